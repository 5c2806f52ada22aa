/** The acceptance tests of a secure agent on every backend but virtual machines: test/machines has those. */
import { CACHE } from '../engines/base-image.ts'
import { everyEngine } from '../engines/every-engine.ts'
import { acceptance, TITLE } from './acceptance.ts'
import { inPlace, onGrounds, PROCESS, SOFT } from './place.ts'

// Not below /tmp, because every sandbox has its own.
onGrounds([...PROCESS, ...SOFT], TITLE, acceptance, CACHE)
everyEngine()(TITLE, engine => inPlace(engine, acceptance, CACHE), 120_000)
