/** The claims whose answer can differ in a virtual machine: one machine for each kind of user, one for those of the guest alone. */
import { afterAll, expect } from 'bun:test'
import { copyFileSync, existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { release } from 'node:os'
import { join } from 'node:path'
import { compileProbe, isSafe, isTwin, runProbe } from '../attack/run-probe.ts'
import { Recorder } from '../library/recorder.ts'
import { until } from '../until.ts'
import { inMachine, ofTheGuest, onMachine } from './machine.ts'

/** Ports of the host: one is open from the start, which boots cold. */
const PORTS = { config: 20_000 + (process.pid % 10_000), later: 30_000 + (process.pid % 10_000) }

const SECRET = 'key-zqxjwkvb-0123456789'

const recorder = await Recorder.open()
const { program, remove } = compileProbe()
afterAll(() => {
  recorder.close()
  remove()
})

/** Answers of a guest that differ: its init is the exec daemon, which starts commands as their user; `docs/platforms.md`. */
const OF_A_GUEST = ['C51-init-caps EINVAL', 'A08-tmpfile EOPNOTSUPP']

inMachine(
  (here, who) => {
    const onOneMachine = ofTheGuest(who)

    onMachine('P7 the sandbox has a kernel of its own, and none of the host’s processes', async () => {
      const { stdout } = await here().sh('uname -r; id -u; grep -l pen-marker /proc/[0-9]*/environ')
      const [kernel, uid, ...more] = stdout.trim().split('\n')
      expect(kernel).not.toBe(release())
      expect(Number(uid)).toBeGreaterThan(0)
      expect(more).toEqual([])
      expect(
        here()
          .audit()
          .find(({ kind }) => kind === 'run-start'),
      ).toMatchObject({ backend: 'vm' })
    })

    onOneMachine('P16 input, output, exit codes, signals and terminals pass as elsewhere', async () => {
      const bytes = new Uint8Array(3_000_000).map((_, i) => i * 7)
      const digest = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
      const passed = await here().sh('tee copy | sha256sum; echo to-stderr >&2; exit 7', { stdin: bytes })
      expect(passed).toMatchObject({ code: 7, stdout: `${digest}  -\n` })
      expect(passed.stderr).toContain('to-stderr')
      expect(new Uint8Array(readFileSync(join(here().box.project, 'copy')))).toEqual(bytes)
      expect((await here().sh('kill -TERM $$')).code).toBe(143)
      expect((await here().sh('exec no-such-program')).code).toBe(127)
      const late = await here().pen('exec', '--timeout', '1s', '--', 'sleep', '60')
      expect(late.code).toBe(124)
      expect((await here().sh('ps -e | grep -c " sleep$"')).stdout.trim()).toBe('0')
      const terminal = await here().sh('script -qec "tty; stty size" /dev/null </dev/null')
      expect(terminal.stdout).toContain('/dev/pts/')
    })

    onMachine('P1 the guest reads the project and the system, and nothing else of the host', async () => {
      const { box } = here()
      const read = await here().sh(
        `cat inside; cat ${box.home}/outside; ls ${box.home}/.pen; ls /root /boot /sys/kernel`,
      )
      expect(read.stdout).toBe('inside\n')
      expect(read.code).not.toBe(0)
      expect((await here().sh('ls -A /run/pen.vm; touch /run/pen.vm/x')).stdout).toBe('')
      expect((await here().sh('ls /run')).stdout).toContain('pen.vm')
    })

    onMachine('P2 what the guest writes belongs to the user, and no file is setuid or a device', async () => {
      const { box } = here()
      await here().sh(
        'echo new >written; mkdir -p a/b; ln -s written link; cp /bin/true suid; chmod 4755 suid; mkfifo fifo',
      )
      await here().sh('mknod null c 1 3; echo x >/usr/x; echo x >/etc/x; echo x >/x')
      const made = (name: string) => lstatSync(join(box.project, name))
      for (const name of ['written', 'a/b', 'link'])
        expect([name, made(name).uid]).toEqual([name, box.launcher.who.uid])
      expect(made('suid').mode & 0o6000).toBe(0)
      expect(existsSync(join(box.project, 'null'))).toBe(false)
      expect([existsSync('/usr/x'), existsSync('/etc/x'), existsSync('/x')]).toEqual([false, false, false])
    })

    onMachine('P3 a denied file is hidden and a protected one is read-only; another is neither', async () => {
      const tried = await here().sh(
        'cat .env; echo hook >.git/hooks/pre-commit; echo x >>.envrc; mv .envrc moved; rm -f .envrc; echo ok >plain',
      )
      expect(tried.stdout).not.toContain('secret')
      const { project } = here().box
      expect(readFileSync(join(project, '.env'), 'utf8')).toBe('secret\n')
      expect(readFileSync(join(project, '.envrc'), 'utf8')).toBe('export A=1\n')
      expect(existsSync(join(project, '.git/hooks/pre-commit'))).toBe(false)
      expect(readFileSync(join(project, 'plain'), 'utf8')).toBe('ok\n')
    })

    onMachine('P3 a change on the host is seen inside within seconds, and one inside at once', async () => {
      const { project } = here().box
      expect((await here().sh('cat inside')).stdout).toBe('inside\n')
      writeFileSync(join(project, 'inside'), 'changed\n')
      await until(async () => (await here().sh('cat inside')).stdout === 'changed\n', 20_000)
      writeFileSync(join(project, 'inside'), 'inside\n')
      await here().sh('echo from-guest >shared')
      expect(readFileSync(join(project, 'shared'), 'utf8')).toBe('from-guest\n')
    })

    onMachine(
      'P10 an allowed host is reached; a refused one is not, with a reason and a record',
      async () => {
        const fetched = await here().sh(
          `curl -sS -m 20 http://${recorder.target}/from-${here().box.launcher.who.uid}`,
        )
        expect(fetched.stdout).toBe('reached\n')
        expect(recorder.seen).toContain(`/from-${here().box.launcher.who.uid}`)
        const refused = await here().sh(
          'curl -sS -m 20 http://refused.test/; curl -sS -m 20 https://198.51.100.7/',
        )
        expect(refused.stdout).toContain('pen refused this connection: no rule allows refused.test')
        expect(refused.stderr).toContain('pen allow refused.test:80')
        const denied = here()
          .audit()
          .filter(({ kind }) => kind === 'connection-denied' || kind === 'connection')
        const text = JSON.stringify(denied)
        expect(text).toContain('refused.test')
        expect(text).toContain('198.51.100.7')
      },
    )

    onOneMachine('P22 a server gets the secret, and nothing inside or in pen’s state has it', async () => {
      const { box, stateDir } = here()
      const used = await here().sh(
        `curl -sS -m 20 -H "x-api-key: $API_KEY" http://${recorder.target}/secret; echo "has $API_KEY"`,
      )
      expect(used.stdout).toMatch(/^reached\nby ([a-z]{3}-[a-z]{8}-[0-9]{10})\nhas \1\n$/)
      expect(recorder.fields[recorder.seen.indexOf('/secret')]?.['x-api-key']).toBe(SECRET)
      const other = await here().sh(`curl -sS -m 20 -H "x-other: $API_KEY" http://${recorder.target}/other`)
      expect(other.stdout).toContain('the secret API_KEY is in the field x-other')
      // The guest trusts pen's authority: a refusal over TLS can be read.
      const refused = await here().sh('curl -sSi -m 20 https://refused.test/')
      expect(refused.stdout).toStartWith('HTTP/1.1 403 ')
      const inside = await here().sh(
        `env; cat /proc/*/environ /proc/cmdline ${stateDir}/authority/* 2>/dev/null; grep -rsao "zqxj[w]kvb" /etc /run /home /tmp .; true`,
      )
      const outside = ['logs --all', 'plan', 'secret list', 'status --json'].map(words =>
        here().pen(...words.split(' ')),
      )
      for (const { stdout, stderr } of [used, other, inside, ...(await Promise.all(outside))])
        expect(stdout + stderr).not.toContain('zqxjwkvb')
      expect(JSON.stringify(here().audit())).not.toContain('zqxjwkvb')
      expect(here().audit()).toContainEqual(
        expect.objectContaining({ path: '/secret', secrets: ['API_KEY'] }),
      )
      expect(readFileSync(join(box.home, 'token'), 'utf8')).toBe(SECRET)
    })

    onMachine('P10 the guest’s only way out is the gateway: no other host service answers', async () => {
      const port = recorder.target.split(':')[1]
      const before = recorder.seen.length
      const tried = await here().sh(
        `for host in 10.0.2.2 127.0.0.1 10.0.2.3 192.0.2.1; do curl -s -m 5 http://$host:${port}/around; done`,
      )
      expect(tried.stdout).not.toContain('reached')
      expect(recorder.seen.slice(before).filter(url => url === '/around')).toEqual([])
    })

    onOneMachine(
      'P10 a server on the guest’s loopback is reached by a port of the config and by pen forward',
      async () => {
        const server = here().start([
          'exec',
          '--',
          'python3',
          '-m',
          'http.server',
          '3000',
          '--bind',
          '127.0.0.1',
        ])
        await until(
          async () => (await here().sh('curl -s 127.0.0.1:3000/inside')).stdout === 'inside\n',
          60_000,
        )
        const get = (port: number): Promise<string> =>
          fetch(`http://127.0.0.1:${port}/inside`).then(
            answer => answer.text(),
            () => 'closed',
          )
        expect([await get(PORTS.config), await get(PORTS.later)]).toEqual(['inside\n', 'closed'])
        const forward = here().start(['forward', `${PORTS.later}:3000`])
        await forward.printed(String(PORTS.later))
        expect(await get(PORTS.later)).toBe('inside\n')
        forward.child.kill('SIGTERM')
        await forward.ended
        expect(await get(PORTS.later)).toBe('closed')
        server.child.kill('SIGTERM')
        await server.ended
      },
    )

    onOneMachine('P5 a file that is granted while the guest runs is served, and no other', async () => {
      const { box } = here()
      const granted = box.directory(join(box.home, 'granted'))
      box.file(join(granted, 'file'), 'granted\n')
      expect((await here().sh(`pen files cat ${granted}/file`)).stderr).toContain('no grant covers it')
      expect((await here().pen('grant', '--rw', granted)).code).toBe(0)
      const tried = await here().sh(
        `pen files cat ${granted}/file; pen files put copy ${granted}/put; pen files cat ${box.home}/outside`,
      )
      expect(tried.stdout).toStartWith('granted\n')
      expect(tried.stdout).not.toContain('outside\n')
      expect(readFileSync(join(granted, 'put'))).toEqual(readFileSync(join(box.project, 'copy')))
    })

    onOneMachine('P7 the guest’s user gains no root, mounts nothing and loads no module', async () => {
      const { stdout } = await here().sh(
        'grep -E "^(NoNewPrivs|CapEff|CapBnd|Seccomp):" /proc/self/status; mount -t tmpfs x /tmp; echo b >/proc/sysrq-trigger; cat /dev/vport*p1',
      )
      expect(stdout.replace(/\t/g, ' ').trim().split('\n')).toEqual([
        'CapEff: 0000000000000000',
        'CapBnd: 0000000000000000',
        'NoNewPrivs: 1',
        'Seccomp: 2',
      ])
      expect((await here().sh('echo works')).stdout).toBe('works\n')
    })

    onOneMachine(
      'P12 hostile system calls get a safe answer from the guest’s kernel, and every twin works',
      async () => {
        copyFileSync(program, join(here().box.project, 'probe'))
        const { stdout } = await here().sh('./probe', { timeoutMs: 100_000 })
        const probes = runProbe('./probe', () => stdout)
        const others = probes.filter(probe => !isSafe(probe)).map(({ id, outcome }) => `${id} ${outcome}`)
        expect(others).toEqual(OF_A_GUEST)
        expect(probes.filter(probe => !isTwin(probe)).length).toBeGreaterThanOrEqual(150)
        expect(probes.filter(isTwin).length).toBeGreaterThanOrEqual(50)
      },
    )

    onOneMachine('P12 the guest has the memory and the processes of the limits, and no more', async () => {
      const { stdout } = await here().sh('grep MemTotal /proc/meminfo; nproc; bash -c "ulimit -u"')
      const [memory = '', , processes = ''] = stdout.trim().split('\n')
      const kib = Number(/\d+/.exec(memory)?.[0])
      expect(kib).toBeGreaterThan(200 * 1024)
      expect(kib).toBeLessThan(1024 * 1024)
      expect(Number(processes)).toBe(64)
      const shared = await here().sh('df --output=size --block-size=1M /dev/shm | tail -1')
      expect(Number(shared.stdout)).toBeWithin(1, 520)
      // A shell that cannot fork ends with 2 or 254.
      const bomb = await here().sh('for i in $(seq 100); do sleep 1 & done 2>/dev/null; wait; echo survived')
      expect([bomb.code, bomb.stdout]).toEqual([expect.any(Number), ''])
      expect((await here().sh('echo works')).stdout).toBe('works\n')
    })
  },
  here => {
    const { box } = here
    box.file('inside', 'inside\n')
    box.file('.env', 'secret\n')
    box.file('.envrc', 'export A=1\n')
    box.file(join(box.home, 'outside'), 'outside\n')
    box.file(join(box.home, 'token'), SECRET, 0o600)
    mkdirSync(join(box.project, '.git'), { recursive: true })
    box.host('rmdir .git; git init -q .')
    return ['--allow', recorder.target, '--limit', 'memory=1GiB', '--limit', 'pids=64', '--deny', '.env']
  },
  {
    ports: [{ guest: 3000, host: PORTS.config }],
    secrets: [{ name: 'API_KEY', from: { file: '~/token' }, to: [`http://${recorder.target}`] }],
  },
)
