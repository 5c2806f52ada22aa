/**
 * What a sandbox prints goes to the user's terminal, and a terminal obeys. Ordinary output passes: text, colours,
 * cursor, titles, links, pictures. What acts on the user beyond the screen is taken out, by lists of what may pass:
 * the clipboard (OSC 52 and its kin), keys that type what the sandbox chose (DECUDK, title reports, answerback), reading
 * the screen back, printing, and commands to multiplexers, editors and terminals that take them from their output.
 *
 * UTF-8 is assumed, as on every terminal of today: there a control character above 0x80 is two bytes. So that it stays true,
 * the sequences that choose another encoding are taken out too: in Latin-1 the second half of a letter is a control character.
 */
const ENQ = 0x05
const BEL = 0x07
const CAN = 0x18
const SUB = 0x1a
const ESC = 0x1b
const DEL = 0x7f
/** The first byte of U+0080 to U+009F: what ESC and a letter mean, in one character. */
const C1_LEAD = 0xc2

/** Longer than any sequence that a terminal knows, before its kind is clear. */
const MAX_HELD = 512

type State = 'text' | 'escape' | 'designating' | 'csi' | 'string' | 'passing' | 'dropping'

export class TerminalFilter {
  #state: State = 'text'
  /** The sequence so far, while it is not known whether it may pass. */
  #held = ''
  /** Bytes of a character that are still to come. */
  #continuation: number = 0
  /** The smallest that the next of them may be: below, the character is none, and the byte stands alone. */
  #least: number = 0x80
  #lead: boolean = false
  #out: number[] = []

  /** Bytes in, bytes out. A sequence is held until its kind is known, also when it is cut between two chunks. */
  push(chunk: Uint8Array): Uint8Array {
    if (this.#state === 'text' && !this.#lead && this.#continuation === 0 && chunk.every(isPlain))
      return chunk
    this.#out = []
    for (const byte of chunk) this.#decode(byte)
    return Uint8Array.from(this.#out)
  }

  /** Whether what was passed on ends with a whole character or sequence. */
  get isBetween(): boolean {
    return this.#state !== 'passing' && this.#continuation === 0
  }

  /** What ends an unfinished string: without it the terminal would swallow what the user's shell prints next. */
  end(): Uint8Array {
    const open = this.#state === 'passing'
    this.#state = 'text'
    this.#held = ''
    this.#lead = false
    this.#continuation = 0
    return open ? Uint8Array.of(ESC, 0x5c) : new Uint8Array()
  }

  /** Finds control characters of two bytes, and bytes that are neither text nor control. */
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
      // No text begins with it: what follows would be read as if it stood alone.
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
      // It ends whatever was begun; of what was held nothing has been shown.
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
      // In the midst of a sequence a terminal carries out a line feed, skips a delete, and goes on with the sequence.
      if (byte < 0x20) this.#out.push(byte)
      if (byte < 0x20 || byte === DEL) return
      // What a letter of another script does there differs: so there is no sequence.
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

/** How many bytes of a character follow its first. */
const lengthAfter = (byte: number): number =>
  byte < 0xc2 || byte > 0xf4 ? 0 : byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1
const leastAfter = (byte: number): number => (byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80)

const isPlain = (byte: number): boolean => byte < 0x80 && byte !== ESC && byte !== ENQ

/**
 * Title reports (the terminal types a title that the sandbox set), printing, and checksums of what is on the screen; other
 * encodings (`ESC %`) and other forms of the control characters (`ESC` and a blank).
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is looked for
const HARMFUL = /^\x1b(?:\[(?:0*2[01](?:[;:][0-9;:]*)?t|[^@-~]*i|[^@-~]*\*y)|[% ].*)$/s
const isHarmful = (sequence: string): boolean => HARMFUL.test(sequence)

/** Titles, colours, links, progress, pointer shape, prompt marks. */
const OSC = /^(?:[0-2458]|1[0-9]|22|10[45]|11[0-9]|133)$/
/** Pictures (sixel), what a program asks of settings and capabilities, and screens that are drawn at once. */
const DCS = /^(?:[0-9;]*q|\$q|\+q|=[0-9]s)$/

const PICTURE = /^1337;File=(?:[^:]*;)?inline=1[;:]/

/** Whether a string may go to the terminal: undefined as long as it has not said what it is. */
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

/** Pictures of kitty's kind, with their bytes in them. By the name of a file or of shared memory the terminal would read the host's. */
function mayPassPicture(body: string): boolean | undefined {
  if (!body.startsWith('G')) return false
  const [settings = '', ...rest] = body.replace('\x07', ';').split(';')
  if (rest.length === 0) return undefined
  return /^G(?:[A-Za-z]=[A-Za-z0-9-]*,?)*$/.test(settings) && !/t=(?!d,|d$)/.test(settings)
}

function mayPassOsc(body: string): boolean | undefined {
  const [, number = '', after] = /^([0-9]*)(.?)/s.exec(body) ?? []
  if (after === '') return undefined
  // A picture is shown; every other file, clipboard or setting of this family acts on the user's machine.
  if (number === '1337' && after === ';') return body.endsWith(':') ? PICTURE.test(body) : undefined
  if (number === '9' && after === ';') return body.length < 4 ? undefined : body === '9;4;'
  return (after === ';' || after === '\x07') && OSC.test(number)
}
