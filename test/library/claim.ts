/** One claim about the library as programs use it: on Node and on Bun, as root and as an ordinary user. */
import { until } from '../until.ts'
import { type Ground, onGrounds, type Place, PROCESS } from './place.ts'
import { type Program, type Runtime, withProgram } from './program.ts'

/** One claim on each runtime and for each kind of user, in a project whose sandbox has no network. */
export function claim(
  title: string,
  body: (program: Program, place: Place) => Promise<void>,
  config: object = OFFLINE,
): void {
  const onRuntime = (runtime: Runtime, grounds: readonly Ground[]): void =>
    onGrounds(grounds, `${title}, on ${runtime}`, async place => {
      place.configure(config)
      await withProgram(place, runtime, program => body(program, place))
    })
  onRuntime('node', PROCESS)
  onRuntime('bun', PROCESS.slice(-1))
}

export const OFFLINE = { network: { offline: true } }

/** A killed process stays visible for a moment, until it is reaped. */
export async function nothingLeft(program: Program): Promise<void> {
  await until(async () => (await program.exec('pgrep sleep || echo none')).stdout === 'none\n')
}
