import { describe, expect, test } from 'bun:test'
import { BufferBudget, type BufferOwner } from './buffer-budget.ts'

class Peer implements BufferOwner {
  wasTold: boolean = false
  buffered: number
  constructor(buffered: number) {
    this.buffered = buffered
  }
  overrun(): void {
    this.wasTold = true
    this.buffered = 0
  }
}

describe('buffered bytes', () => {
  test('up to the limit end no connection', () => {
    const held = new BufferBudget(100)
    const peers = [new Peer(40), new Peer(60)]
    for (const peer of peers) held.note(peer)
    expect(held.count()).toBe(100)
    expect(peers.map(peer => peer.wasTold)).toEqual([false, false])
  })

  test('beyond the limit end the newest connection', () => {
    const held = new BufferBudget(100)
    const peers = [new Peer(40), new Peer(60), new Peer(1)]
    for (const peer of peers) held.note(peer)
    expect(held.count()).toBe(100)
    expect(peers.map(peer => peer.wasTold)).toEqual([false, false, true])
  })

  test('that were sent make room for others', () => {
    const held = new BufferBudget(100)
    const [early, late] = [new Peer(90), new Peer(90)]
    held.note(early)
    held.count()
    early.buffered = 0
    held.note(late)
    expect(held.count()).toBe(90)
    expect(late.wasTold).toBe(false)
  })

  test('are counted by a timer, and at once after many notes', async () => {
    const held = new BufferBudget(100)
    const peer = new Peer(101)
    held.note(peer)
    expect(peer.wasTold).toBe(false)
    await Bun.sleep(30)
    expect(peer.wasTold).toBe(true)
    const crowd = Array.from({ length: 64 }, () => new Peer(2))
    for (const one of crowd) held.note(one)
    expect(crowd.filter(one => one.wasTold).length).toBe(14)
  })
})
