import { describe, expect, test } from 'bun:test'
import { judgeServers, nameServers, question, readReply, socketsAt } from './host-dns.ts'

describe('name servers', () => {
  test('are the addresses of resolv.conf, three at most, this machine when there are none', () => {
    const text = '# nameserver 192.0.2.9\nnameserver 192.0.2.1\n nameserver 2001:db8::1\nnameserver x;y\n'
    expect(nameServers(text)).toEqual(['192.0.2.1', '2001:db8::1'])
    expect(nameServers('nameserver 192.0.2.1\n'.repeat(5))).toHaveLength(3)
    expect(nameServers('')).toEqual(['127.0.0.1'])
  })

  test.each([
    [[['192.0.2.1', true]], 'ok'],
    [
      [
        ['192.0.2.1', true],
        ['192.0.2.2', false],
      ],
      'weak',
    ],
    [[['192.0.2.1', false]], 'weak'],
  ] as const)('%j: %s', (answers, status) => {
    expect(judgeServers(answers).status).toBe(status)
  })
})

describe('a reply', () => {
  const asked = question('doctor.example', 0x1234)
  const answer = (bytes: number[]) => {
    const head = Buffer.from(asked)
    head.writeUInt16BE(0x8180, 2)
    head.writeUInt16BE(1, 6)
    return Buffer.concat([head, Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...bytes])])
  }

  test('gives its address', () => {
    expect(readReply(answer([198, 18, 0, 1]), asked)).toEqual({ address: '198.18.0.1' })
  })

  test('without an address is still an answer', () => {
    const none = Buffer.from(asked)
    none.writeUInt16BE(0x8183, 2)
    expect(readReply(none, asked)).toEqual({ address: undefined })
  })

  test('to another query, a query, or a truncated one is no reply', () => {
    expect(readReply(answer([1, 2, 3, 4]), question('doctor.example', 0x4321))).toBeUndefined()
    expect(readReply(asked, asked)).toBeUndefined()
    expect(readReply(Buffer.alloc(3), asked)).toBeUndefined()
  })
})

test('the owner of port 53 is read from the kernel: only listeners, only that port', () => {
  const head =
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'
  const row = (at: string, state: string, inode: number) =>
    `   0: 0100007F:${at} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000   0        0 ${inode} 1\n`
  expect(
    socketsAt(53, head + row('0035', '0A', 7) + row('0035', '01', 8) + row('1F35', '0A', 9), 'tcp'),
  ).toEqual(['7'])
  expect(socketsAt(53, head + row('0035', '07', 5), 'udp')).toEqual(['5'])
})
