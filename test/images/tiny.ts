/** An image with a few programs and nothing else: rootless podman maps the files of each new image one by one. */
import { BASE_NAME } from '../engines/test-engine.ts'

const PROGRAMS = ['bash', 'cat', 'echo', 'grep', 'pgrep', 'seq', 'setsid', 'sh', 'sleep']

/** `more` changes its root directory, /r, before the image is made; `last` are lines of the Dockerfile. */
export const tinyImage = (more = 'true', last = ''): string => `FROM ${BASE_NAME} AS parts
RUN mkdir -p /r/proc /r/sys /r/dev /r/etc /r/tmp /r/home && for program in ${PROGRAMS.join(' ')}; do cp --parents -L /bin/$program $(ldd /bin/$program | grep -o '/[^ ]*') /r || exit; done && ${more}
FROM scratch
COPY --from=parts /r /
ENV PATH=/bin
${last}
`
