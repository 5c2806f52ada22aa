/** Enumerated config values. Separate from the schema, so that a merge does not load the validator. */

/** Strictest first. */
export const PROFILE_NAMES = ['strict', 'coding', 'dev'] as const
export const ISOLATION_LEVELS = ['auto', 'soft', 'process', 'container', 'gvisor', 'vm'] as const
export const BACKEND_NAMES = ['process', 'podman', 'docker', 'vm', 'apple', 'soft', 'kubernetes'] as const
/** Strictest first. */
export const NETWORK_MODES = ['none', 'gateway', 'bridge'] as const
export const IMAGE_PULLS = ['missing', 'never'] as const
