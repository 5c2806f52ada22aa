/** What a person sees on the terminal while an image is built. */
import { expect } from 'bun:test'
import { Tmux } from '../agents/tmux.ts'
import { everyEngine } from '../engines/every-engine.ts'
import { Workshop } from './workshop.ts'

const onEachEngine = everyEngine(['podman', 'docker'], { podman: 'in turn' })

/** Colours, a progress bar, a title, a link, and a character set, as ordinary programs print them. */
const PRINTS = String.raw`printf '\033[32mgreen-word\033[0m\n\033]0;title\007titled\n\033]8;;http://example.com\033\\linked\033]8;;\033\\\n\033(Bplain\n'; for i in 1 2 3; do printf '\rstep %s\033[K' $i; done; echo; echo all-was-printed`

onEachEngine('P15 colours and cursor moves of a build are not shown as text on a terminal', async engine => {
  using shop = new Workshop(engine)
  shop.configure({ network: { offline: true } })
  shop.dockerfile(`ARG PEN_BASE\nFROM $PEN_BASE\nRUN ${PRINTS}; true ${crypto.randomUUID()}\n`)
  const digest = /^sha256:[0-9a-f]{64}$/m.exec(shop.build().out)?.[0] ?? ''
  const words = ['build', '--backend', engine.backend, '--yes', '--expect', digest]
  const { argv, env } = shop.words(...words)
  const tmux = new Tmux(argv, shop.box.project, env)
  try {
    const screen = await tmux.shows('built: ')
    for (const word of ['green-word', 'titled', 'linked', 'plain', 'step', 'all-was-printed'])
      expect(screen).toContain(word)
    // Not of the line that shows the command itself, which has them as the Dockerfile spells them.
    const printed = screen.split('\n').filter(line => !line.includes('printf'))
    expect(printed.join('\n')).not.toMatch(/\\x1b|\\u001b|\^\[|\[32m|\[0m|\[K|\]0;|\]8;|\(B/)
  } finally {
    tmux.close()
  }
})
