/** One end of a connection to a supervisor, as those who talk over it see it: whichever runtime it is made of. */
export interface ControlEvents {
  /** The bytes may be reused afterwards. */
  data(bytes: Uint8Array): void
  /** The last event. */
  closed(): void
}

export interface ControlStream {
  attach(events: ControlEvents): void
  /** In order. What the other end does not take stays in memory: whoever sends keeps it within bounds. */
  send(bytes: Uint8Array): void
  /** Undefined when everything has been taken. */
  room(): Promise<void> | undefined
  /** After what was sent. */
  end(): void
  destroy(): void
}
