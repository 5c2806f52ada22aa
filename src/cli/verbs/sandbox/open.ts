import { EXIT } from '../../../base/error.ts'
import { findTool } from '../../../base/find-tool.ts'
import { startProgram } from '../../../base/start-program.ts'
import { requestValue } from '../../../control/client.ts'
import type { SandboxStatus } from '../../../run/status.ts'
import { defineVerb } from '../../frame/verb.ts'
import { notRunning, openForward, readPair } from './open-forward.ts'

export const verb = defineVerb({
  name: 'open',
  summary: 'Open a server of the sandbox in the browser',
  details:
    "Forwards the port as pen forward does, prints the address, and opens it in the browser: $BROWSER if it is an absolute path, else the system's. Runs until Ctrl-C or until the sandbox stops; if the port is forwarded already, it ends at once. pen status lists the servers inside. Do not trust the page: it comes from the sandbox.",
  flags: { 'no-browser': { kind: 'boolean', about: 'print the address only' } },
  positionals: { port: { arity: 'one', about: 'a port in the sandbox, or HOST_PORT:PORT' } },
  examples: {
    'pen open 3000': 'open port 3000 of the sandbox',
    'pen open 0:5173': 'from a free port of this machine',
    'pen open --no-browser 3000': 'print the address',
  },
  async run({ flags, positionals, terminal, project, env, answer }) {
    const pair = readPair(positionals.port, 'open')
    const asked = await requestValue(project.stateDir, 'status')
    if (asked === undefined) throw notRunning()
    const known = (asked.value as SandboxStatus).forwards.find(
      ({ guest, host }) => guest === pair.guest && (pair.host === 0 || pair.host === host),
    )
    const opened = known === undefined ? await openForward(project.stateDir, [pair]) : undefined
    const { guest, host } = known ?? opened?.ports[0] ?? pair
    const url = `http://127.0.0.1:${host}/`
    const end = opened === undefined ? '' : '; Ctrl-C ends it'
    answer({ version: 1, url, guest, host }, `${url} → port ${guest} of the sandbox${end}`)
    if (!flags['no-browser'] && !openBrowser(url, env['BROWSER']))
      terminal.note('pen: no browser was found; open the address yourself')
    if (opened === undefined) return EXIT.ok
    await opened.ended
    terminal.note('the sandbox stopped; its port is closed')
    return EXIT.ok
  },
})

/** A relative program is never started: a directory of the project may be in PATH. */
function openBrowser(url: string, own: string | undefined): boolean {
  const program = own?.startsWith('/') ? own : (findTool('xdg-open') ?? findTool('open'))
  if (program === undefined) return false
  try {
    startProgram([program, url], { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' }).unref()
    return true
  } catch {
    return false
  }
}
