// A program of the tests that uses the tools of the examples, which lie beside it when it runs.
import { Sandbox } from 'pen'
import { aiSdkTools } from './ai-sdk-tools.mjs'
import { langChainTools } from './langchain-tools.mjs'

const box = await Sandbox.start({ project: process.argv[2], pen: process.env.PEN })
const ai = aiSdkTools(box)
const [[run, fields], [request]] = langChainTools(box)
console.log(
  JSON.stringify({
    names: [...Object.keys(ai), fields.name],
    ran: await ai.run.execute({ command: 'echo ai; exit 2' }),
    late: (await ai.run.execute({ command: 'sleep 60', timeoutSeconds: 0.2 })).timedOut,
    read: await ai.readFile.execute({ path: 'open.txt' }),
    refused: await ai.readFile.execute({ path: '.env' }),
    chain: JSON.parse(await run({ command: 'echo chain' })),
    asked: JSON.parse(await request({ path: '/etc/shadow', wait_seconds: 0 })),
  }),
)
await box.stop()
