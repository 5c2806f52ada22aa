/** An empty file that nobody may open, in every sandbox: what denied files are covered with while it runs. */
export const NOTHING = '/etc/.pen-nothing'
