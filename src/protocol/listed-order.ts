/** What pen tells its inner mode before the only program that it will ever become. */

/** The word after `pen`. By itself it can do nothing: the descriptors named after it must be there too. */
export const LISTED_MODE = '__listed'

export interface ListedOrder {
  readonly argv: readonly string[]
  /** The command's variables. The inner mode itself starts without them: LD_PRELOAD and the like are not for it. */
  readonly env: readonly { readonly name: string; readonly value: string }[]
  /** Files, and directories with all beneath them, that may be executed. */
  readonly executable: readonly string[]
}

/** What comes through the second descriptor when the mounts are ready: nothing else, and no end of file, lets it go on. */
export const READY = 'r'
