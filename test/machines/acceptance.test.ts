/** The library, MCP and the command line in a virtual machine: the same claims as on every other backend. */
import { CACHE } from '../engines/base-image.ts'
import { acceptance, TITLE } from '../library/acceptance.ts'
import { inPlace, MACHINES } from '../library/place.ts'
import { onMachine } from '../vm/machine.ts'

for (const ground of MACHINES)
  onMachine(`${TITLE} (${ground.name})`, () => inPlace(ground, acceptance, CACHE), 600_000)
