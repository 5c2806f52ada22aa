import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { conformance, onTheHost } from './conformance.ts'
import { adoptOrphans, descendants, untilAlone } from './descendants.ts'
import { triesMachines } from './launcher.ts'
import { Screen } from './screen.ts'

adoptOrphans()

const SHELL = 'pen run -- bash --norc -i; echo "code $?"'
/** A prompt that no echoed line can look like. */
const PROMPT = "PS1=ready'> '\r"

conformance(
  'P15 an interactive program has its own terminal of the right size, also when it changes',
  async box => {
    using screen = new Screen(box, `tty; ${SHELL}`)
    await screen.shows(/\/dev\/pts\/\d+/)
    await screen.shows('$ ')
    screen.type('test -t 0 && test -t 1 && test -t 2 && stty size && echo "own $(ps -o tpgid= -p $$)"\r')
    await screen.shows('\n33 91\r\n')
    await screen.shows(/own +[1-9]/)
    screen.type(
      `python3 -c 'import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, {28}); print("listens", flush=True); signal.sigwait({28}); print(*os.get_terminal_size())'\r`,
    )
    await screen.shows('\nlistens')
    screen.resize(120, 50)
    await screen.shows('\n120 50')
    await screen.shows('$ ')
    screen.type('exit 6\r')
    await screen.shows('code 6')
    await screen.ended()
  },
)

conformance(
  'P15 Ctrl-C, Ctrl-Z, Ctrl-\\ and Ctrl-D have their usual meaning inside, and job control works',
  async box => {
    using screen = new Screen(box, SHELL)
    await screen.shows('$ ')
    screen.type(PROMPT)
    await screen.shows('\nready> ')
    const foreground = async (line: string, keys: string, shown: string | RegExp) => {
      screen.type(`echo go; ${line}\r`)
      await screen.shows('\ngo\r\n')
      // The shell starts the program, which QEMU translates.
      await Bun.sleep(triesMachines ? 1500 : 60)
      screen.type(keys)
      await screen.shows(shown)
      await screen.shows('ready> ')
    }
    await foreground('sleep 50', '\x03', '^C')
    screen.type('echo "was $?"\r')
    await screen.shows('\nwas 130')
    await foreground('sleep 51', '\x1a', 'Stopped')
    screen.type('jobs; bg; jobs\r')
    await screen.shows(/Stopped +sleep 51[\s\S]*Running +sleep 51/)
    await foreground('fg', '\x03', '^C')
    await foreground('sh -c "ulimit -c 0; sleep 52"', '\x1c', '^\\')
    await foreground('cat; echo "end of input"', 'typed\r\x04', /\ntyped\r\n[\s\S]*end of input/)
    screen.type('exit\r')
    await screen.shows('code')
    await screen.ended()
  },
)

conformance('P15 terminal modes are restored, whatever the program did and however it ended', async box => {
  const wreck = `stty raw -echo -isig; printf '\\033[?1049h\\033[?25l\\033[?1000h\\033[?2004h\\033='`
  const endings: readonly (readonly [string, string])[] = [
    ['exits', `pen run -- sh -c '${wreck.replaceAll("'", '"')}; exit 3'`],
    ['is killed', `pen run -- sh -c '${wreck.replaceAll("'", '"')}; kill -9 $$'`],
    ['runs out of time', `pen run --wall 300ms -- sh -c '${wreck.replaceAll("'", '"')}; sleep 30'`],
    ['is not there', 'pen run -- no-such-program'],
    [
      'is killed with pen’s SIGTERM',
      `pen run -- sh -c '${wreck.replaceAll("'", '"')}; sleep 30' & sleep 0.4; kill -TERM %1; fg >/dev/null; true`,
    ],
  ]
  for (const [how, line] of endings) {
    using screen = new Screen(
      box,
      `set -m; a=$(stty -g); ${line}; b=$(stty -g); [ "$a" = "$b" ] && echo SAME; echo DONE`,
    )
    await screen.shows('DONE', 8000)
    expect([how, screen.seen.includes('SAME')]).toEqual([how, true])
    if (screen.seen.includes('\x1b[?1049h'))
      for (const undone of ['\x1b[?1049l', '\x1b[?25h', '\x1b[?1000l', '\x1b[?2004l', '\x1b>'])
        expect([how, undone, screen.seen.lastIndexOf(undone) > screen.seen.indexOf('\x1b[?1049h')]).toEqual([
          how,
          undone,
          true,
        ])
    await screen.ended()
  }
})

conformance(
  'P15 nothing the sandbox types reaches the shell, and nothing typed later reaches the sandbox',
  async box => {
    box.file(
      'type.py',
      `import fcntl, os, termios
for c in 'echo evil > evil\\n':
  for call in (termios.TIOCSTI, termios.TIOCSTI | 1 << 40):
    try: fcntl.ioctl(0, call & 0x7fffffff, c)
    except OSError: pass
print('\\033[6n\\033]52;c;ZXZpbA==\\a\\033[21t', flush=True)
import time; time.sleep(0.3)`,
    )
    using screen = new Screen(
      box,
      `pen run -- python3 type.py; pen run -- sh -c '(sleep 1; head -c 1 > stolen) & exit'; echo READY; read -r line; echo "got <$line>"`,
    )
    // Like a terminal: it answers as if that had been typed.
    await screen.shows('\x1b[6n')
    screen.type('\x1b[1;1R')
    await screen.shows('READY')
    screen.type('mine\r')
    await screen.shows('got <mine>')
    await screen.ended()
    // The sandbox must not set the clipboard or the title.
    for (const asked of ['\x1b[21t', '\x1b]52']) expect(screen.seen).not.toContain(asked)
    expect(box.listing(box.project).map(line => line.split(' ')[0]?.split('/').at(-1))).toEqual(['type.py'])
  },
)

conformance(
  'P15 a terminal at one end and a pipe at the other both work',
  async box => {
    using screen = new Screen(
      box,
      `pen run -- sh -c 'test -t 0 && ! test -t 1 && read x && echo "read $x"' | tr a-z A-Z; echo piped | pen run -- sh -c 'cat; test -t 1 && echo tty'; echo DONE`,
    )
    await screen.shows('pen: backend')
    screen.type('some line\r')
    await screen.shows('READ SOME LINE')
    await screen.shows(/piped\r\ntty\r\n/)
    await screen.shows('DONE')
    await screen.ended()
  },
  { needs: 'mixedTerminal', users: 'ordinary' },
)

conformance(
  'P15 lines cross in order when only one end is a terminal',
  async box => {
    using screen = new Screen(
      box,
      `pen run -- sh -c 'read x && echo "read $x"' | tr a-z A-Z; echo piped | pen run -- sh -c 'cat; echo err >&2; echo out'; echo DONE`,
    )
    await screen.shows('pen: backend')
    screen.type('some line\r')
    await screen.shows('READ SOME LINE')
    await screen.shows(/piped\r\nerr\r\nout\r\n/)
    await screen.shows('DONE')
    await screen.ended()
  },
  { users: 'ordinary' },
)

conformance(
  'P15 pen run without a command is a shell: with a prompt on a terminal, or with a script as input',
  async box => {
    using screen = new Screen(box, 'pen run; echo "code $?"')
    await screen.shows(/[$#>] /)
    screen.type('echo $((6 * 7)) $AGENT_IN_SANDBOX; exit 4\r')
    await screen.shows('\n42 1\r\n')
    await screen.shows('code 4')
    await screen.ended()
    const script = await box.run([], { stdin: 'echo $((6 * 7)); pwd > where; exit 5' })
    expect([script.code, script.stdout]).toEqual([5, '42\n'])
    expect(readFileSync(join(box.project, 'where'), 'utf8')).toBe(`${box.project}\n`)
  },
  { users: 'ordinary' },
)

conformance(
  'P15 a run in the background of a shell continues there, and can come to the front',
  async box => {
    using screen = new Screen(
      box,
      `set -m; pen run -- sh -c 'echo began; sleep 0.3; echo x > made' & wait; echo "there: $(ls)"; pen run -- sh -c 'echo asks; read x; echo "<$x>"' & sleep 0.5; echo "FRONT $(jobs -r | wc -l)"; fg; echo DONE`,
    )
    await screen.shows('began')
    await screen.shows('there: made')
    await screen.shows('FRONT 1')
    // What was typed before is its input too, as for any job.
    screen.type('line\r')
    await screen.shows('<line>')
    await screen.shows('DONE')
    await screen.ended()
  },
  { users: 'ordinary' },
)

onTheHost(
  'P15 what pen prints at the end begins on a new line',
  async box => {
    for (const [print, shown] of [
      ['printf half', 'half\r\npen: limit: '],
      ['echo whole', 'whole\r\npen: limit: '],
    ]) {
      using screen = new Screen(box, `pen run --wall 300ms -- sh -c '${print}; sleep 30'; echo DONE`)
      await screen.shows(shown ?? '')
      await screen.shows('DONE')
      await screen.ended()
    }
  },
  { users: 'ordinary' },
)

conformance(
  'P15 a terminal that goes away ends the sandbox, also when no signal is sent',
  async box => {
    const known = new Set(descendants().map(({ pid }) => pid))
    for (const line of [
      'pen run -- sh -c "echo up; sleep 80"',
      'exec setsid --wait bash -c "pen run -- cat"',
    ]) {
      using screen = new Screen(box, line)
      await screen.shows(line.includes('cat') ? 'pen: backend' : '\nup')
      await Bun.sleep(100)
      screen.close()
      expect([line, await untilAlone(known, 2500)]).toEqual([line, []])
    }
  },
  { alone: true },
)
