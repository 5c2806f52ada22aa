// A loop of commands, as an agent runs it: each with its own timeout, and each refusal with the command that
// allows it.
// node examples/command-loop.mjs PROJECT COMMAND…
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
  // The sandbox itself ended or never started. The text is for a model as well as for a person.
  if (!(error instanceof SandboxError)) throw error
  console.log(error.explain())
  process.exitCode = 1
} finally {
  await box.stop()
}
