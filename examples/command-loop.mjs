// A loop of commands, as an agent has it: each with a time of its own, and each refusal with what the user could do about it.
//
//   node examples/command-loop.mjs PROJECT COMMAND…
import { Sandbox, SandboxError } from 'pen'

const [project, ...commands] = process.argv.slice(2)
const box = await Sandbox.start({ project, policy: { profile: 'coding' } })
try {
  for (const command of commands) {
    const { exitCode, stdout, stderr, timedOut, denials } = await box.exec(command, { timeout: 2000 })
    console.log(`$ ${command}\n${stdout}${stderr}→ ${timedOut ? 'timed out' : `exit ${exitCode}`}`)
    for (const { target, why, permission } of denials)
      console.log(`→ refused: ${target}: ${why}${permission === null ? '' : `; to allow it: ${permission}`}`)
  }
} catch (error) {
  // The sandbox itself is gone, or was never there. The text is for a model as well as for a person.
  if (!(error instanceof SandboxError)) throw error
  console.log(error.explain())
  process.exitCode = 1
} finally {
  await box.stop()
}
