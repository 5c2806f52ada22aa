// Answers with the host and the target that Node's server reads from a request in lenient mode.
import { createServer } from 'node:http'

const server = createServer({ insecureHTTPParser: true }, (request, response) =>
  response.end(`seen=${request.headers.host} uri=${request.url}`),
)
server.listen(0, '127.0.0.1', () => console.log(`port=${server.address().port}`))
