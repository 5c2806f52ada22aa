/** Remembers whether the sandbox's output ended in the midst of a line: a spinner, a prompt, the ^C that ended it. */
export class LineState {
  #isMidLine: boolean = false
  #wantsBegin: boolean = false

  /** Whole sequences only: the filter in front cuts none. */
  saw(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is looked for
    const shown = text.replace(/\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|[ -/]*[0-~])/g, '')
    if (shown !== '') this.#isMidLine = !/[\r\n]$/.test(shown)
  }

  wantBegin(): void {
    this.#wantsBegin = true
  }

  /** What begins a new one, where that was asked for and is needed. */
  undo(): string {
    return this.#wantsBegin && this.#isMidLine ? '\r\n' : ''
  }
}
