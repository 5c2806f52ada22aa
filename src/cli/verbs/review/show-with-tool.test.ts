import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { TestLayer } from '../../../../test/review-layer.ts'

/** `diff -r` in place of a program with windows, in a directory that has this much room. */
function shown(layer: TestLayer, room: string): string {
  const parent = `${layer.base}/room`
  mkdirSync(parent, { recursive: true })
  const src = `${import.meta.dir}/../../..`
  const script = `import { readChanges } from '${src}/review/read-changes.ts'
import { OpenDirectories } from '${src}/review/open-directories.ts'
import { showWithTool } from '${import.meta.dir}/show-with-tool.ts'
const [tree, workspace] = ['${layer.upper}', '${layer.workspace}']
using directories = new OpenDirectories(workspace, tree, 'read')
await showWithTool('diff -rq', readChanges(tree, workspace), directories, { parent: '${parent}', env: process.env })
  .catch(error => console.log(error.message))`
  const mount = `mount -t tmpfs -o size=${room} pen '${parent}' && exec "$@"`
  const namespace = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  const argv = ['unshare', ...namespace, '--mount', 'sh', '-c', mount, 'sh', process.execPath, '-e', script]
  const { stdout, stderr } = Bun.spawnSync(argv, { stdio: ['ignore', 'pipe', 'pipe'] })
  return stdout.toString() + stderr.toString()
}

test('the program gets whole files, or is not started where they have no room', () => {
  using layer = new TestLayer()
  layer.host('head -c 300000 /dev/urandom > data; echo same > same')
  layer.inside('head -c 300000 /dev/urandom > data; mkfifo pipe')
  expect(shown(layer, '4m')).toBe('Files before/data and after/data differ\n')
  expect(shown(layer, '400k')).toBe('the files could not be copied for the program (ENOSPC)\n')
})
