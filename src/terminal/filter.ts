/**
 * Filters what a sandbox prints before it reaches the user's terminal, because a terminal executes escape sequences. Text, colours,
 * cursor movement, titles, links and pictures pass. An allowlist removes everything that acts beyond the screen:
 * - clipboard access (OSC 52 and similar sequences)
 * - keys that type text of the sandbox (DECUDK, title reports, answerback)
 * - reading the screen back, and printing
 * - commands to multiplexers, editors and terminals
 *
 * The filter assumes UTF-8, in which a control character above 0x80 is two bytes. It also removes the sequences that select another
 * encoding: in Latin-1 the second byte of a letter can be a control character.
 */
const ENQ = 0x05
const BEL = 0x07
const CAN = 0x18
const SUB = 0x1a
const ESC = 0x1b
const DEL = 0x7f
/** The first byte of U+0080 to U+009F. Each of those means the same as ESC and a letter. */
const C1_LEAD = 0xc2

/** Longer than the part of any known sequence that identifies its kind. */
const MAX_HELD = 512

type State = 'text' | 'escape' | 'designating' | 'csi' | 'string' | 'passing' | 'dropping'

export class TerminalFilter {
  #state: State = 'text'
  /** The sequence so far, while it is undecided whether it may pass. */
  #held = ''
  /** How many bytes of the current character are missing. */
  #continuation: number = 0
  /** The smallest valid next byte. A smaller byte is not part of the character (overlong encoding). */
  #least: number = 0x80
  #lead: boolean = false
  #out: number[] = []

  /** Returns the bytes that may be shown. A sequence is held until its kind is known, also across chunks. */
  push(chunk: Uint8Array): Uint8Array {
    if (this.#state === 'text' && !this.#lead && this.#continuation === 0 && chunk.every(isPlain))
      return chunk
    this.#out = []
    for (const byte of chunk) this.#decode(byte)
    return Uint8Array.from(this.#out)
  }

  /** Whether the output so far ends with a complete character or sequence. */
  get isAtBoundary(): boolean {
    return this.#state !== 'passing' && this.#continuation === 0
  }

  /** Terminates an unfinished string. Otherwise the terminal would swallow the shell's next output. */
  end(): Uint8Array {
    const open = this.#state === 'passing'
    this.#state = 'text'
    this.#held = ''
    this.#lead = false
    this.#continuation = 0
    return open ? Uint8Array.of(ESC, 0x5c) : new Uint8Array()
  }

  /** Converts two-byte control characters to ESC sequences, and drops invalid bytes. */
  #decode(byte: number): void {
    if (this.#lead) {
      this.#lead = false
      if (byte >= 0x80 && byte <= 0x9f) {
        this.#take(ESC)
        this.#take(byte - 0x40)
        return
      }
      this.#continuation = 1
      this.#least = 0x80
      this.#take(C1_LEAD)
    }
    if (byte < 0x80) this.#continuation = 0
    else if (byte === C1_LEAD) {
      this.#lead = true
      this.#continuation = 0
      return
    } else if (byte >= 0xc0) {
      this.#continuation = lengthAfter(byte)
      this.#least = leastAfter(byte)
      // An invalid first byte: the terminal would read the next byte on its own.
      if (this.#continuation === 0) return
    } else if (this.#continuation > 0 && byte >= this.#least) {
      this.#continuation--
      this.#least = 0x80
    } else {
      this.#continuation = 0
      if (byte <= 0x9f) return
    }
    this.#take(byte)
  }

  #take(byte: number): void {
    if (byte === ENQ) return
    if (byte === ESC) {
      // ESC ends an open sequence. Held bytes were not shown yet.
      if (this.#state === 'string' && mayPass(`${this.#held}\x07`) === true) this.#release('escape')
      this.#state = 'escape'
      this.#held = '\x1b'
    } else if (this.#state === 'text') this.#out.push(byte)
    else if (byte === CAN || byte === SUB) {
      if (this.#state === 'passing') this.#out.push(byte)
      this.#state = 'text'
    } else this.#within(byte)
  }

  #within(byte: number): void {
    const char = String.fromCharCode(byte)
    if (this.#state === 'escape' || this.#state === 'designating' || this.#state === 'csi') {
      // Inside a sequence, a terminal executes a control character, ignores DEL, and continues the sequence.
      if (byte < 0x20) this.#out.push(byte)
      if (byte < 0x20 || byte === DEL) return
      // Terminals differ on non-ASCII bytes inside a sequence, so the filter drops the sequence.
      if (byte >= 0x80) {
        this.#state = 'text'
        this.#out.push(byte)
        return
      }
    }
    switch (this.#state) {
      case 'escape':
        this.#held += char
        if (byte < 0x30) this.#state = 'designating'
        else if (char === '[') this.#state = 'csi'
        else if (']P_^X'.includes(char)) this.#state = 'string'
        else this.#release('text')
        return
      case 'designating':
      case 'csi':
        if (this.#held.length < MAX_HELD) this.#held += char
        if (byte >= (this.#state === 'csi' ? 0x40 : 0x30)) this.#finish()
        return
      case 'string':
        this.#held += char
        this.#judge(byte)
        return
      case 'passing':
        this.#out.push(byte)
        if (byte === BEL) this.#state = 'text'
        return
      default:
        if (byte === BEL) this.#state = 'text'
    }
  }

  #finish(): void {
    if (this.#held.length < MAX_HELD && !isHarmful(this.#held)) this.#release('text')
    else this.#state = 'text'
  }

  #judge(byte: number): void {
    const verdict = this.#held.length < MAX_HELD ? mayPass(this.#held) : false
    const ended = byte === BEL
    if (verdict === true) this.#release(ended ? 'text' : 'passing')
    else if (verdict === false || ended) this.#state = ended ? 'text' : 'dropping'
  }

  #release(next: State): void {
    for (let i = 0; i < this.#held.length; i++) this.#out.push(this.#held.charCodeAt(i))
    this.#state = next
  }
}

/** How many bytes follow the first byte of a character. */
const lengthAfter = (byte: number): number =>
  byte < 0xc2 || byte > 0xf4 ? 0 : byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1
const leastAfter = (byte: number): number => (byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80)

const isPlain = (byte: number): boolean => byte < 0x80 && byte !== ESC && byte !== ENQ

/**
 * Title reports (the terminal types a title that the sandbox set), printing, and screen checksums. Also other encodings (`ESC %`)
 * and other forms of control characters (`ESC` and a space).
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches escape sequences
const HARMFUL = /^\x1b(?:\[(?:0*2[01](?:[;:][0-9;:]*)?t|[^@-~]*i|[^@-~]*\*y)|[% ].*)$/s
const isHarmful = (sequence: string): boolean => HARMFUL.test(sequence)

/** Titles, colours, links, progress, pointer shape, prompt marks. */
const OSC = /^(?:[0-2458]|1[0-9]|22|10[45]|11[0-9]|133)$/
/** Sixel pictures, queries of settings and capabilities, and synchronized updates. */
const DCS = /^(?:[0-9;]*q|\$q|\+q|=[0-9]s)$/

const PICTURE = /^1337;File=(?:[^:]*;)?inline=1[;:]/

/** Whether a string may pass. Undefined while its kind is unknown. */
function mayPass(held: string): boolean | undefined {
  const body = held.slice(2)
  switch (held[1]) {
    case ']':
      return mayPassOsc(body)
    case 'P':
      return /[@-~]/.test(body) ? DCS.test(body) : undefined
    case '_':
      return mayPassPicture(body)
    default:
      return false
  }
}

/** Kitty pictures with inline data. Those that name a file or shared memory would make the terminal read from the host. */
function mayPassPicture(body: string): boolean | undefined {
  if (!body.startsWith('G')) return false
  const [settings = '', ...rest] = body.replace('\x07', ';').split(';')
  if (rest.length === 0) return undefined
  return /^G(?:[A-Za-z]=[A-Za-z0-9-]*,?)*$/.test(settings) && !/t=(?!d,|d$)/.test(settings)
}

function mayPassOsc(body: string): boolean | undefined {
  const [, number = '', after] = /^([0-9]*)(.?)/s.exec(body) ?? []
  if (after === '') return undefined
  // Only inline pictures pass. Other sequences of this family write files, the clipboard or settings of the host.
  if (number === '1337' && after === ';') return body.endsWith(':') ? PICTURE.test(body) : undefined
  if (number === '9' && after === ';') return body.length < 4 ? undefined : body === '9;4;'
  return (after === ';' || after === '\x07') && OSC.test(number)
}
