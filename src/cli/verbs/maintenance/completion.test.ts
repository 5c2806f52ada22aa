/** Runs the scripts in real shells; bash and zsh also on a terminal. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DENIED_IN, deniedLine } from '../../../../test/denied-line.ts'
import { skipUnless } from '../../../../test/skip.ts'
import { type TemporaryProject, temporaryProject } from '../../../../test/temporary-project.ts'

const MAIN = join(import.meta.dir, '../../../main.ts')
const has = (shell: string) => spawnSync(shell, ['-c', 'true']).status === 0
const onZsh = skipUnless(has('zsh'), 'zsh is missing')
const onFish = skipUnless(has('fish'), 'fish is missing')

let project: TemporaryProject
const env = () => ({
  HOME: project.home,
  PATH: '/usr/bin',
  TERM: 'dumb',
  LANG: 'C.UTF-8',
  BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0',
})
const pen = (...args: string[]) =>
  spawnSync(process.execPath, [MAIN, ...args], { cwd: project.workspace, env: env(), encoding: 'utf8' })

beforeAll(() => {
  project = temporaryProject()
  for (const shell of ['bash', 'zsh', 'fish'])
    writeFileSync(join(project.home, `pen.${shell}`), pen('completion', shell).stdout)
  project.write('some file.txt', '')
  mkdirSync(join(project.workspace, 'source'))
  const denied = (name: string) => deniedLine({ name, fix: `pen allow ${name}:443` })
  const names = ['registry.example.com', '$(touch made).example', '`touch made`', 'x;touch made']
  project.writeLive('config.json', '{"version":1}')
  project.writeLive(DENIED_IN, `${names.map(denied).join('\n')}\n`)
})
afterAll(() => project[Symbol.dispose]())

/** Splits words like bash, with the cursor at the end. */
function inBash(line: string, more = ''): string[] {
  const script = `source "$HOME/pen.bash"
    ${more}
    COMP_LINE=$1 COMP_POINT=\${#1} COMP_WORDS=("\${@:2}") COMP_CWORD=$(($# - 2))
    _pen; printf '%s\\n' "\${COMPREPLY[@]}"`
  const pieces = line.split(/\s+|([:=])/).filter(piece => piece !== undefined)
  const broken = pieces.filter((piece, i) => piece !== '' || (i === pieces.length - 1 && / $/.test(line)))
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script, 'bash', line, ...broken], {
    cwd: project.workspace,
    env: env(),
    encoding: 'utf8',
  })
  if (stderr !== '') throw new Error(stderr)
  return stdout.split('\n').filter(text => text !== '')
}

describe('in bash', () => {
  test.each([
    ['pen pol', ['policy']],
    ['pen policy ', ['explain']],
    ['pen run --profile ', ['strict', 'coding', 'dev']],
    ['pen run --profile=s', ['strict']],
    ['pen run --profile=', ['strict', 'coding', 'dev']],
    ['pen run --limit mem', ['memory=']],
    ['pen run --limit memory=2', ['2GiB']],
    ['pen allow ', ['registry.example.com:443']],
    ['pen allow registry.example.com:', ['443']],
    ['pen allow registry.example.com:4', ['443']],
    ['pen run --read sou', ['source']],
    ['pen run --read=sou', ['source']],
    ['pen run -- mkfif', ['mkfifo']],
    ['pen completion z', ['zsh']],
  ])('%j becomes %j', (line, expected) => {
    expect(inBash(line)).toEqual(expected)
  })

  test('a command after -- is completed by its own rules where bash has them', () => {
    const rules = `_command_offset() { COMPREPLY=("from-$1-\${COMP_WORDS[$1]}"); }`
    expect(inBash('pen run --profile=dev -- git che', rules)).toEqual(['from-6-git'])
    expect(inBash('pen run git che', rules)).toEqual(['from-2-git'])
  })
})

/** Types keys into a shell on a terminal, and returns what the terminal then shows. */
async function atTerminal(argv: readonly string[], start: string, keys: string): Promise<string> {
  let seen = ''
  const terminal = new Bun.Terminal({
    cols: 120,
    rows: 40,
    data: (_, bytes) => {
      seen += Buffer.from(bytes).toString()
    },
  })
  const child = Bun.spawn([...argv], { cwd: project.workspace, env: { ...env(), PS1: '> ' }, terminal })
  const shows = async (text: string) => {
    for (const late = performance.now() + 8000; !seen.includes(text); await Bun.sleep(5))
      if (performance.now() > late) throw new Error(`not shown: ${text}\n${JSON.stringify(seen)}`)
  }
  try {
    terminal.write(`${start}; echo rea''dy\r`)
    await shows('ready')
    const from = seen.length
    terminal.write(keys)
    terminal.write('; echo do""ne\r')
    await shows('done')
    return seen.slice(from)
  } finally {
    child.kill('SIGKILL')
    await child.exited
    terminal.close()
  }
}

/** Prints its arguments, to show the command line after completion. */
const ECHO = `pen() { printf '<%s>' "$@"; }`

describe('at a terminal', () => {
  test('bash completes a refused host and a file with a blank in its name, and nothing is executed', async () => {
    const seen = await atTerminal(
      ['bash', '--norc', '--noprofile', '-i'],
      `source ~/pen.bash; ${ECHO}`,
      'pen allow reg\t; pen run --read som\t; pen run --profile=s\t; pen allow registry.example.com:\t; pen run --read=som\t; pen allow \t',
    )
    const words = seen.replaceAll(/\s+/g, ' ')
    expect(words).toContain(
      '<allow><registry.example.com:443><run><--read><some file.txt><run><--profile=strict>',
    )
    expect(words).toContain('<allow><registry.example.com:443><run><--read=some file.txt><allow>')
    expect(seen).not.toContain('touch')
    expect(existsSync(join(project.workspace, 'made'))).toBe(false)
  })

  onZsh('zsh also takes the script as a file of its function path', async () => {
    const seen = await atTerminal(
      ['zsh', '-f', '-i'],
      `mkdir -p ~/f; cp ~/pen.zsh ~/f/_pen; fpath=(~/f $fpath); autoload -Uz compinit; compinit -D -u; ${ECHO}`,
      'pen allow reg\t; pen run --profile=s\t',
    )
    expect(seen).toContain('<allow><registry.example.com:443><run><--profile=strict>')
  })

  onZsh('zsh completes the same', async () => {
    const seen = await atTerminal(
      ['zsh', '-f', '-i'],
      `autoload -Uz compinit; compinit -D -u; source ~/pen.zsh; ${ECHO}`,
      'pen allow reg\t; pen run --read som\t; pen run --profile=s\t; pen pol\texp\t./sou\t; pen run -- mkfif\t',
    )
    const words = seen.replaceAll(/\s+/g, ' ')
    expect(words).toContain('<allow><registry.example.com:443><run><--read><some file.txt>')
    expect(words).toContain('<run><--profile=strict><policy><explain><./source><run><--><mkfifo>')
  })
})

onFish('in fish verbs, values, files, hosts and the commands of others are completed', () => {
  const lines = [
    'pen pol',
    'pen run --profile=s',
    'pen allow ',
    'pen run --read sou',
    'pen run --read=sou',
    'pen run -- mkfif',
    'pen completion z',
  ]
  const script = `source ~/pen.fish; for line in $argv; echo "== $line"; complete -C "$line"; end`
  const { stdout } = spawnSync('fish', ['-c', script, ...lines], {
    cwd: project.workspace,
    env: env(),
    encoding: 'utf8',
  })
  const found = stdout
    .split('== ')
    .slice(1)
    .map(text =>
      text
        .trim()
        .split('\n')
        .slice(1)
        .map(line => line.split('\t')[0]),
    )
  expect(found).toEqual([
    ['policy'],
    ['--profile=strict'],
    ['registry.example.com:443'],
    ['source/'],
    ['--read=source/'],
    ['mkfifo'],
    ['zsh'],
  ])
})

test('the script calls the pen that printed it, by its quoted path', () => {
  expect(pen('completion', 'bash').stdout).toContain(`'${MAIN}' __complete --`)
  const wrong = pen('completion', 'bahs')
  expect([wrong.status, wrong.stderr.includes('did you mean pen completion bash?')]).toEqual([2, true])
})

test('completion writes nothing, prints nothing else, and never fails', () => {
  const before = spawnSync('find', [project.root, '-printf', '%p %s %T@\n'], { encoding: 'utf8' }).stdout
  for (const words of [[], [''], ['allow', ''], ['\u001b', ''], ['run', '--', ''], ['logs', '--run', '']]) {
    const { status, stderr } = pen('__complete', '--', ...words)
    expect([words, status, stderr]).toEqual([words, 0, ''])
  }
  expect(spawnSync('find', [project.root, '-printf', '%p %s %T@\n'], { encoding: 'utf8' }).stdout).toBe(
    before,
  )
})
