/** Protected places while a sandbox runs: what appears there is moved away, and told. */
import { printable } from '../base/printable.ts'
import type { Project } from '../config/project.ts'
import { Quarantine, type QuarantineEvent } from './quarantine.ts'
import type { RepositoryFacts } from './repository.ts'

export interface PlaceWatch {
  /** After every process of the sandbox is gone: the last look, which nothing can race. */
  finish(): void
}

export function watchPlaces(
  facts: RepositoryFacts,
  project: Project,
  runId: string,
  tell: (line: string) => void,
): PlaceWatch {
  const quarantine = new Quarantine({
    watch: facts.watch,
    held: facts.protect,
    dir: `${project.stateDir}/quarantine/${runId}`,
    tell: event => tell(inWords(event)),
  })
  quarantine.start()
  return {
    finish: () => {
      quarantine.sweep()
      quarantine.stop()
    },
  }
}

function inWords(event: QuarantineEvent): string {
  const path = printable(event.path, 1024)
  switch (event.kind) {
    case 'moved':
      return `protected: ${path} appeared (${event.what}) and was ${event.to === null ? 'removed' : `moved to ${printable(event.to, 1024)}`}${event.restored ? '; what stood there before is back' : ''}`
    case 'lost':
      return `protected: ${path} was ${event.gone ? 'removed' : 'replaced'} on the host while the sandbox ran: until it is restarted, it is held by watching only`
    case 'stuck':
      return `protected: ${path} could not be moved away (${printable(event.why, 200)}): look at it before you trust it`
  }
}
