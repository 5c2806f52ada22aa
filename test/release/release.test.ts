/** A whole release, installed by each way on an empty machine (`sh scripts/test.sh release`). */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeRelease } from '../../scripts/release.ts'
import { makeRoot, run, runIn } from './debian-root.ts'

const ROOT = join(import.meta.dir, '../..')
const RELEASE = join(ROOT, 'release')
let debian = ''

beforeAll(() => {
  makeRelease(RELEASE)
  debian = makeRoot(join(ROOT, '.test-homes/release'))
}, 900_000)

const sums = (release: string): string => readFileSync(join(release, 'SHA256SUMS'), 'utf8')

describe('a release', () => {
  test('has the sum of each of its files, and two releases of one commit are equal', () => {
    const files = readdirSync(RELEASE, { recursive: true, withFileTypes: true }).filter(file => file.isFile())
    expect(sums(RELEASE).match(/^[0-9a-f]{64} {2}/gm)).toHaveLength(files.length - 1)
    run('sh', '-c', 'cd "$0" && sha256sum --check --strict --quiet SHA256SUMS', RELEASE)
    const folder = mkdtempSync(join(tmpdir(), 'pen-release-'))
    try {
      makeRelease(join(folder, 'again'))
      expect(sums(join(folder, 'again'))).toBe(sums(RELEASE))
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test.each([
    ['pen-linux-x64', 'ELF 64-bit LSB executable, x86-64'],
    ['pen-linux-arm64', 'ELF 64-bit LSB executable, ARM aarch64'],
    ['pen-darwin-arm64', 'Mach-O 64-bit arm64 executable'],
    ['pen-darwin-x64', 'Mach-O 64-bit x86_64 executable'],
  ])('%s is a program for its platform', (name, kind) => {
    expect(run('file', '--brief', join(RELEASE, name))).toStartWith(kind)
  })

  test.each(['arm64', 'x64'])('each page of pen-darwin-%s has the hash of its signature', arch => {
    const program = readFileSync(join(RELEASE, `pen-darwin-${arch}`))
    const at = program.lastIndexOf(Buffer.from('fade0cc0', 'hex')) + 20
    expect(program.readUInt32BE(at)).toBe(0xfade0c02)
    const [hashes, pages, end] = [16, 28, 32].map(field => program.readUInt32BE(at + field))
    expect(end).toBe(at - 20)
    expect(pages).toBe(Math.ceil((at - 20) / 4096))
    for (let page = 0; page < Number(pages); page++) {
      const bytes = program.subarray(page * 4096, Math.min((page + 1) * 4096, at - 20))
      const place = at + Number(hashes) + 32 * page
      const expected = program.subarray(place, place + 32)
      if (!createHash('sha256').update(bytes).digest().equals(expected)) throw new Error(`page ${page}`)
    }
  })
})

const LIST = 'find / -xdev -not -path "/proc/*" -not -path "/sys/*" -not -path "/tmp/*" | sort'

describe('on an empty machine', () => {
  test('without Node, install.sh installs pen, and uninstall.sh leaves nothing', () => {
    const said = runIn(
      debian,
      RELEASE,
      `${LIST} >/tmp/before
sh /opt/release/install.sh
export PATH=$HOME/.local/bin:$PATH
mkdir /tmp/project; cd /tmp/project
pen run -- sh -c 'echo from inside >file'; cat file
pen doctor | tail -1
cd /; sh /opt/release/uninstall.sh --yes
${LIST} >/tmp/after
cmp /tmp/before /tmp/after && echo no difference`,
    )
    expect(said).toContain('installed pen ')
    expect(said).toContain('\nfrom inside\n')
    expect(said).toMatch(/pen run works here: .* 0 failed\n/)
    expect(said).toEndWith('no difference\n')
  })

  test.each(['20', '22', '24'])('with Node %s, npm installs pen, and a program imports it', version => {
    const said = runIn(
      debian,
      RELEASE,
      `export PATH=/opt/node${version}/bin:$PATH
mkdir /tmp/project /tmp/app; cd /tmp/app; echo '{"type":"module"}' >package.json
npm() { node /opt/npm/bin/npm-cli.js --offline --no-audit --no-fund "$@"; }
npm install --ignore-scripts pen@file:/opt/release/npm/pen-sandbox-0.1.0.tgz /opt/release/npm/pen-sandbox-linux-x64-0.1.0.tgz
echo "import { Sandbox } from 'pen'
const box = await Sandbox.start({ project: '/tmp/project' })
console.log((await box.exec(['echo', 'from the library'])).stdout.trim())
await box.stop()" >program.mjs
node program.mjs
cd /tmp/project; /tmp/app/node_modules/.bin/pen run -- echo from the program`,
    )
    expect(said).toContain('from the library\nfrom the program\n')
  })
})

test.each([
  ['publint', ['run', '--strict']],
  ['@arethetypeswrong/cli', ['--profile', 'esm-only']],
])('%s finds nothing in the package', (tool, words) => {
  const [package_ = ''] = readdirSync(join(RELEASE, 'npm')).filter(name => /^pen-sandbox-\d/.test(name))
  run('npm', 'exec', '--yes', '--', tool, ...words, join(RELEASE, 'npm', package_))
})
