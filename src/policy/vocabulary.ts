/** The words of a config that are chosen from a list. Apart from the schema, so that a merge does not load the validator. */

/** The one that grants least first. */
export const PROFILE_NAMES = ['strict', 'coding', 'dev'] as const
export const ISOLATION_LEVELS = ['auto', 'soft', 'process', 'container', 'gvisor', 'vm'] as const
export const BACKEND_NAMES = ['process', 'podman', 'docker', 'vm', 'apple', 'soft', 'kubernetes'] as const
/** The one that lets out least first. */
export const NETWORK_MODES = ['none', 'gateway', 'bridge'] as const
/** When a base image is fetched. */
export const IMAGE_PULLS = ['missing', 'never'] as const
