/**
 * Fetches a missing image, like `docker run`, over the engine's own network and with the user's settings for it. Only names
 * from the user are fetched: from the live config, or from a Dockerfile that the user agreed to.
 */
import { type Engine, reasonOf } from '../backend/container/engine/engine.ts'
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { startProgram } from '../base/start-program.ts'
import { eachLine } from './engine-lines.ts'

const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap(name => [name, name.toLowerCase()])

export async function pullImage(
  engine: Engine,
  name: string,
  /** Shows the engine's output, line by line and escaped. */
  show: (line: string) => void,
): Promise<void> {
  // A registry may be behind the user's proxy. A daemon has its own proxy settings.
  const proxies = PROXIES.flatMap(key => (process.env[key] === undefined ? [] : [[key, process.env[key]]]))
  const child = startProgram([engine.program, ...engine.flags, 'pull', name], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: '/',
    env: { ...engine.env, ...Object.fromEntries(proxies) },
  })
  let last = ''
  const said = [child.stdout, child.stderr].map((stream, i) =>
    eachLine(stream, line => {
      if (i === 1) last = line
      show(line)
    }),
  )
  const code = await child.exited
  await Promise.all(said)
  if (code === 0) return
  const reason = reasonOf({ stderr: last, code, ended: 'exit' })
  throw new PenError('IMAGE', {
    what: `${engine.name} could not fetch the image ${printable(name)}: ${reason}`,
    hint: fixFor(engine, reason),
  })
}

const HERE = 'or name an image that is on this machine: pen config set image.args.BASE NAME'

/** Checked in this order: an unreachable registry says nothing about the image. */
const FIXES: readonly (readonly [RegExp, (engine: Engine) => string])[] = [
  [
    /x509|certificate|HTTP response to HTTPS/i,
    ({ daemon, name, certificates }) =>
      `give ${daemon ? 'the daemon' : name} the registry’s certificate in ${certificates}`,
  ],
  [
    /no such host|connection refused|timeout|timed out|network is unreachable|no route|lookup |dial /i,
    () => `check the connection to the registry, ${HERE}`,
  ],
  [
    /unauthorized|authentication required|denied|forbidden/i,
    ({ name }) => `check the name, or sign in to the registry: ${name} login`,
  ],
  [
    /manifest|not found|unknown|does not exist|name invalid|short-name/i,
    () => `check the name and the tag of the image, ${HERE}`,
  ],
]

const fixFor = (engine: Engine, reason: string): string =>
  FIXES.find(([symptom]) => symptom.test(reason))?.[1](engine) ?? `check the connection, ${HERE}`
