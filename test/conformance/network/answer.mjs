// A program that answers in place of a person. Plain JavaScript, because Node 20 runs nothing else.
const { Sandbox } = await import('./index.js')

const box = await Sandbox.start({
  project: process.cwd(),
  pen: process.argv[2],
  policy: { backend: 'process', network: { ask: 'hold' } },
})
box.on('ask', ({ target }) => {
  console.log(`asked ${target}`)
  void (target === 'allowed.test:80' ? box.allow(target, { once: true }) : box.deny(target, { once: true }))
})
for (const host of ['allowed.test', 'evil.test']) {
  const write = '%header{x-pen-denied} %{http_code}'
  const { stdout } = await box.exec(['curl', '-s', '-o', '/dev/null', '-w', write, `http://${host}/`])
  console.log(`${host}: ${stdout.trim()}`)
}
await box.stop()
