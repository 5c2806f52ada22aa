/**
 * A container trusts the certificate authorities that were added to the host: in curl, OpenSSL, Python, git and
 * Node.js.
 */
import { afterAll, beforeAll, expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRoot } from '../engines/base-image.ts'
import { everyEngine } from '../engines/every-engine.ts'
import { Workshop } from '../images/workshop.ts'
import { skipUnless } from '../skip.ts'

const NAME = 'host.pen.internal'
let place: { readonly dir: string; readonly server: Server; readonly port: number }
let heard = 0

function openssl(dir: string, ...words: string[]): void {
  const { status, stderr } = spawnSync('openssl', words, { cwd: dir, encoding: 'utf8' })
  if (status !== 0) throw new Error(`openssl ${words.join(' ')}: ${stderr}`)
}

beforeAll(async () => {
  const dir = mkdtempSync(join(tmpdir(), 'pen-ca-'))
  chmodSync(dir, 0o755)
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl(
    dir,
    'req',
    '-x509',
    ...key,
    '-keyout',
    'ca.key',
    '-out',
    'ca.crt',
    '-days',
    '2',
    '-subj',
    '/CN=Company CA',
  )
  openssl(dir, 'req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', `/CN=${NAME}`)
  writeFileSync(join(dir, 'san'), `subjectAltName=DNS:${NAME}\n`)
  openssl(
    dir,
    ...'x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile san'.split(
      ' ',
    ),
  )
  writeFileSync(join(dir, 'bundle.crt'), readFileSync(join(dir, 'ca.crt')), { mode: 0o644 })
  const read = (name: string) => readFileSync(join(dir, name))
  const server = createServer({ key: read('server.key'), cert: read('server.crt') }, (_, answer) => {
    heard += 1
    answer.end('hello')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  place = { dir, server, port: (server.address() as { port: number }).port }
})

afterAll(() => {
  place.server.close()
  rmSync(place.dir, { recursive: true, force: true })
})

/**
 * A machine with that authority added, in a mount namespace of the test. A daemon finds the bundle by its real
 * name.
 */
const added = (): string[] => [
  'unshare',
  '-m',
  'sh',
  '-ec',
  `mount -t tmpfs none /etc/ssl/certs; ln -s "$1/bundle.crt" /etc/ssl/certs/ca-certificates.crt; mkdir -p /usr/local/share/ca-certificates
mount -t tmpfs none /usr/local/share/ca-certificates; cp "$1/ca.crt" /usr/local/share/ca-certificates/; shift; exec "$@"`,
  'sh',
  place.dir,
]

const TRIES = (url: string): string => `curl -sS ${url}; echo " curl"
python3 -c "import urllib.request as u; print(u.urlopen('${url}').read().decode(), 'python')"
node -e "require('https').get('${url}', a => a.on('data', d => console.log(d + ' node'))).on('error', e => console.log(e.code))"
git ls-remote ${url}r.git 2>&1 | grep -o 'certificate verification failed' || echo "hello git"`

const onEachEngine = everyEngine(['podman', 'docker'], { podman: 'in turn' })

skipUnless(isRoot, 'mounts need root')('there is a machine to add an authority to', () =>
  expect(isRoot).toBe(true),
)

if (isRoot)
  onEachEngine(
    'a container trusts an authority that the host trusts; P6 another stays unknown',
    async engine => {
      const flags = ['--backend', engine.backend, '--allow', `${NAME}:${place.port}`]
      // Not `spawnSync`: the server that answers runs in this process.
      const run = async (shop: Workshop): Promise<string[]> => {
        const words = ['run', ...flags, '--', 'sh', '-c', TRIES(`https://${NAME}:${place.port}/`)]
        const ran = Bun.spawn(shop.words(...words).argv, { stdout: 'pipe', stderr: 'ignore' })
        return (await ran.stdout.text()).split('\n').filter(Boolean)
      }
      using shop = new Workshop(engine, added())
      expect(await run(shop)).toEqual(['hello curl', 'hello python', 'hello node', 'hello git'])
      using plain = new Workshop(engine)
      const before = heard
      expect((await run(plain)).filter(line => line.startsWith('hello'))).toEqual([])
      expect(heard).toBe(before)
    },
  )
