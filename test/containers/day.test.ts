/**
 * A whole day with a project's sandbox, as a person would type it. `day.txt` is what the terminal shows. Names,
 * times and sizes that differ from run to run are replaced by words. UPDATE_GOLDEN=1 rewrites the file; read it
 * before you commit.
 */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World } from '../conformance/network/world.ts'
import { everyEngine } from '../engines/every-engine.ts'
import { within } from '../until.ts'
import { isGone } from './sandbox.ts'

const TRANSCRIPT = join(import.meta.dir, 'day.txt')
const onEachEngine = everyEngine(['podman', 'docker'], { podman: 'in turn' })

const DAY: readonly (readonly string[])[] = [
  ['init'],
  ['config', 'set', 'backend', 'ENGINE'],
  ['build', '--quiet'],
  ['start', '--detach'],
  ['exec', '--', 'sh', '-c', 'echo made inside > note.txt; id -un; pwd | xargs basename'],
  ['exec', '--', 'curl', '-sS', 'http://allowed.test/'],
  ['logs'],
  ['allow', 'allowed.test:80'],
  ['exec', '--', 'curl', '-sS', 'http://allowed.test/'],
  ['stats'],
  ['exec', '--', 'sh', '-c', 'echo warm > ~/.cache/npm.txt; echo gone > ~/scratch.txt'],
  ['restart'],
  ['exec', '--', 'sh', '-c', 'cat ~/.cache/npm.txt; ls ~/scratch.txt; cat note.txt'],
  ['status'],
  ['stop'],
  ['status'],
  ['ls'],
]

onEachEngine(
  'P4 a whole day: init, build, start, refusal, allow, restart with volumes, stop, nothing left',
  async engine => {
    const world = await World.get()
    const user = engine.who.uid === 0 ? 'root' : 'pentest'
    using project = world.project({ name: engine.who.name, user })
    const heard = world.listen()
    const lines: string[] = []
    let supervisor = 0
    for (const line of DAY) {
      const words = line.map(word => (word === 'ENGINE' ? engine.backend : word))
      const { status, stdout, stderr } = project.command(words, engine.env)
      if (words[0] === 'status' && status === 0) supervisor = Number(/process (\d+)/.exec(stdout)?.[1])
      lines.push(`$ pen ${line.map(quoted).join(' ')}`, stdout.trimEnd(), stderr.trimEnd())
      if (status !== 0) lines.push(`[exit ${status}]`)
      lines.push('')
    }
    const shown = plain(lines.filter((line, n) => line !== '' || lines[n - 1] !== '').join('\n'), project)
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(TRANSCRIPT, shown)
    expect(shown).toBe(readFileSync(TRANSCRIPT, 'utf8'))
    // One request arrived: the one after the permission.
    expect(heard.requests).toHaveLength(1)
    expect(supervisor).toBeGreaterThan(1)
    expect(await within(2000, () => isGone(supervisor))).toBe(true)
    const [program = '', ...rest] = engine.command(['ps', '--all', '--quiet', '--filter', 'label=pen=1'])
    const left = spawnSync(program, [...rest, '--filter', `label=pen.sandbox=${idOf(project.stateDir)}`])
    expect(left.stdout.toString()).toBe('')
    expect(readFileSync(join(project.workspace, 'note.txt'), 'utf8')).toBe('made inside\n')
  },
  120_000,
)

const quoted = (word: string): string => (/^[\w./:@=-]+$/.test(word) ? word : `'${word}'`)
const idOf = (stateDir: string): string => stateDir.slice(stateDir.lastIndexOf('/') + 1)

/** Values that differ between runs and engines, by name. Columns are as wide as their contents. */
function plain(text: string, { workspace, stateDir }: { workspace: string; stateDir: string }): string {
  return text
    .replaceAll(idOf(stateDir), 'ID')
    .replaceAll(workspace, 'PROJECT')
    .replace(/^( {2}(weaker|warning) .*\n)+/gm, '')
    .replace(/\d{4}-\d\d-\d\d[T ][\d:.]+Z?/g, 'TIME')
    .replace(/pen\/default:[0-9a-f]{16}/g, 'pen/default:DIGEST')
    .replace(/process \d+, run \S+/, 'process PID, run RUN')
    .replace(/backend is "\w+"/, 'backend is "ENGINE"')
    .replace(/backend {4}\w+,/, 'backend    ENGINE,')
    .replace(/since {6}\S+/, 'since      AGE')
    .replace(/^ID .*\/ 4 GiB.*$/m, row =>
      row.replace(/[\d.]+%|[\d.]+ (?:[KMG]i)?B(?! disk)|\b\d+(?= \/ 4096)/g, 'N'),
    )
    .replace(/^ID( .*)$/gm, row => row.replace(/ {2,}/g, '  '))
    .trimEnd()
    .concat('\n')
}
