// Runs on Node: the same command, alternating between the libraries. Plain JavaScript, as programs import them.
import { spawn } from 'node:child_process'

const [library, pen, peer, project, rounds] = process.argv.slice(2)

const captured = (program, args) =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: project, stdio: ['ignore', 'pipe', 'pipe'] })
    let out = ''
    let err = ''
    child.stderr.on('data', data => {
      err += data
    })
    child.stdout.on('data', data => {
      out += data
    })
    child.once('error', reject)
    child.once('close', code =>
      code === 0 ? resolve(out) : reject(new Error(`${program} ended with ${code}: ${err}`)),
    )
  })

const { Sandbox } = await import(library)
const box = await Sandbox.start({ project, pen, backend: 'process' })
const ways = {
  'spawn, no sandbox': () => captured('/bin/echo', ['ran']),
  'pen, library': async () => (await box.exec(['/bin/echo', 'ran'])).stdout,
}
let reason = null
let manager
try {
  manager = (await import(peer)).SandboxManager
  await manager.initialize({
    network: { allowedDomains: ['example.com'], deniedDomains: [] },
    filesystem: { denyRead: [], allowWrite: [project], denyWrite: [] },
  })
  ways['sandbox-runtime, library'] = async () => {
    const out = await captured('/bin/sh', ['-c', await manager.wrapWithSandbox('/bin/echo ran')])
    // Without this option it leaves files in the project that break its next command.
    manager.cleanupAfterCommand()
    return out
  }
  await ways['sandbox-runtime, library']()
} catch (error) {
  reason = String(error.message ?? error).split('\n', 1)[0]
  delete ways['sandbox-runtime, library']
}

const times = Object.fromEntries(Object.keys(ways).map(name => [name, []]))
for (let round = -10; round < Number(rounds); round++)
  for (const [name, way] of Object.entries(ways)) {
    const began = performance.now()
    const out = await way()
    if (out !== 'ran\n') throw new Error(`${name} said ${JSON.stringify(out)}`)
    if (round >= 0) times[name].push(performance.now() - began)
  }
await box.stop()
await manager?.reset?.().catch(() => undefined)
console.log(JSON.stringify({ times, reason }))
process.exit(0)
