/** The message to the guest mode for listed programs, which then becomes the command. */

/** The word after `pen`. The mode also needs the descriptors that are named after it. */
export const LISTED_MODE = '__listed'

export interface ListedOrder {
  readonly argv: readonly string[]
  /** The command's variables. The guest itself starts without them, so that LD_PRELOAD does not affect it. */
  readonly env: readonly { readonly name: string; readonly value: string }[]
  /** Files, and whole directories, that may be executed. */
  readonly executable: readonly string[]
}

/** Sent through the second descriptor when the mounts are ready. Any other byte, or an end of file, stops the guest. */
export const READY = 'r'
