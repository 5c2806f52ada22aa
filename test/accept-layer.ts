/** As a program: accepts everything in a test layer, so that a test can kill it. Prints a line when it begins. */
import { realpathSync } from 'node:fs'
import { Accepted } from '../src/review/accepted.ts'
import { applyChanges, type Places } from '../src/review/apply-changes.ts'
import { readChanges } from '../src/review/read-changes.ts'
import { recoverAccept } from '../src/review/recover-accept.ts'

const [base = ''] = process.argv.slice(2)
const places: Places = {
  layer: `${base}/layer`,
  tree: `${base}/layer/upper`,
  workspace: realpathSync(`${base}/layer/lower`),
}
recoverAccept(places)
const changes = readChanges(places.tree, places.workspace)
process.stdout.write('begins\n')
const { applied, left, stopped } = applyChanges(changes, places, new Accepted(places.layer))
process.stdout.write(
  `${JSON.stringify({ applied: applied.length, left: left.length, stopped: stopped ?? null })}\n`,
)
