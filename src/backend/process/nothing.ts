/** An empty file without permissions, in every sandbox. Live mounts cover denied files with it. */
export const NOTHING = '/etc/.pen-nothing'
