'use strict'

// Blocks and their reader, with hand-made files: truncated, damaged, interleaved, rotated.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { ENTRY_BYTES, LAST, REPEATS, encode, maxBytesOf } = require('../../lib/record/block')
const { BlockReader, describeMissing, follow, inOrder, isRecording } = require('../../report/read/recording-file')
const { folder } = require('../helpers/sinks')

/**
 * Reads the blocks of a file.
 * @param {AsyncIterable<Uint8Array>} chunks
 * @param {BlockReader} [reader] counts missing parts
 */
async function * readBlocks (chunks, reader = new BlockReader()) {
  for await (const chunk of chunks) yield * reader.push(chunk)
  yield * reader.end()
}

/**
 * @param {object} block
 * @param {number} block.number
 * @param {number} [block.source]
 * @param {number} [block.first]
 * @param {number} [block.entries]
 * @param {string[]} [block.texts]
 * @param {number} [block.flags]
 * @param {number} [block.now]
 * @param {number} [block.lost]
 */
function made ({ number, source = 1, first = 1, entries = 2, texts = [], flags = 0, now = 10, lost = 0 }) {
  const lines = texts.map((line) => `${line}\n`).join('')
  const target = Buffer.alloc(maxBytesOf(lines, entries))
  const bytes = new Uint8Array(entries * ENTRY_BYTES).map((_, i) => (i * 7 + number) & 255)
  const head = { number, source, first, flags, now, origin: 1e12, lost }
  return target.subarray(0, encode(target, head, lines, [bytes.subarray(0, 48), bytes.subarray(48)]))
}

/** @param {Uint8Array} bytes @param {number} [size] of chunks */
function readIn (bytes, size = bytes.length) {
  const reader = new BlockReader()
  const blocks = []
  for (let i = 0; i < bytes.length; i += size) blocks.push(...reader.push(bytes.subarray(i, i + size)))
  blocks.push(...reader.end())
  return { blocks, missing: reader.missing }
}

const three = [
  made({ number: 1, first: 1, texts: ['{"source":{"pid":1}}', '{"chain":1,"at":"ä €"}'] }),
  made({ number: 2, first: 3, entries: 3 }),
  made({ number: 3, first: 6, entries: 0, texts: ['{"span":1}'], flags: LAST })
]
const whole = Buffer.concat(three)

test('written data are read, in chunks of any size', async (t) => {
  for (const size of [1, 3, 63, 64, 65, 200, whole.length]) {
    const { blocks, missing } = readIn(whole, size)
    t.deepEqual(blocks.map(({ number, first, texts, isLast }) => ({ number, first, texts, isLast })), [
      { number: 1, first: 1, texts: ['{"source":{"pid":1}}', '{"chain":1,"at":"ä €"}'], isLast: false },
      { number: 2, first: 3, texts: [], isLast: false },
      { number: 3, first: 6, texts: ['{"span":1}'], isLast: true }
    ])
    t.deepEqual([...blocks[1].entries].slice(0, 3), [2, 9, 16])
    t.is(blocks[1].entries.byteOffset % 8, 0)
    t.is(blocks[1].entries.length, 3 * ENTRY_BYTES)
    t.deepEqual(blocks.map(({ now, origin, lost }) => [now, origin, lost]), Array(3).fill([10, 1e12, 0]))
    t.deepEqual(describeMissing(missing, String), [])
  }
})

test('a file cut at any byte is read up to there', (t) => {
  const ends = three.map((_, i) => Buffer.concat(three.slice(0, i + 1)).length)
  for (let cut = 0; cut <= whole.length; cut++) {
    const { blocks, missing } = readIn(whole.subarray(0, cut))
    t.is(blocks.length, ends.filter((end) => end <= cut).length, `at ${cut}`)
    t.is(missing.cut, cut === 0 || ends.includes(cut) ? 0 : 1, `at ${cut}`)
    t.is(missing.skipped, cut - (ends.filter((end) => end <= cut).at(-1) ?? 0), `at ${cut}`)
  }
})

test('a file without its beginning is read from its next block on', (t) => {
  for (let cut = 1; cut < three[0].length; cut++) {
    const { blocks, missing } = readIn(whole.subarray(cut))
    t.deepEqual(blocks.map(({ number }) => number), [2, 3])
    t.is(missing.skipped, three[0].length - cut)
    t.is(missing.cut, 0)
    t.deepEqual(describeMissing(missing, () => 'process 1')[1], 'process 1: the first 2 entries are in another file')
  }
})

test('a torn block between others is lost alone', (t) => {
  for (let cut = 1; cut < three[1].length; cut++) {
    const { blocks, missing } = readIn(Buffer.concat([three[0], three[1].subarray(0, cut), three[2]]), 100)
    t.deepEqual(blocks.map(({ number }) => number), [1, 3], `at ${cut}`)
    t.is(missing.skipped, cut)
    const state = { last: 3, next: 6, earlier: 0, blocks: 1, entries: 3, isComplete: true }
    t.deepEqual(missing.sources.get(1), state)
  }
})

test('a changed byte costs only its block', (t) => {
  const ends = three.map((_, i) => Buffer.concat(three.slice(0, i + 1)).length)
  for (let i = 0; i < whole.length; i++) {
    const damaged = Buffer.from(whole)
    damaged[i] ^= 0x55
    const { blocks, missing } = readIn(damaged)
    const hit = ends.findIndex((end) => i < end)
    t.deepEqual(blocks.map(({ number }) => number), [1, 2, 3].filter((number) => number !== hit + 1), `at ${i}`)
    t.is(missing.skipped, three[hit].length, `at ${i}`)
  }
})

test('noise is not a recording, and is skipped between blocks', (t) => {
  let seed = 7
  const random = () => { seed = (Math.imul(seed, 1103515245) + 12345) >>> 0; return seed >>> 24 }
  for (let round = 0; round < 50; round++) {
    const noise = Buffer.from(Array.from({ length: 200 + round * 7 }, random))
    for (let i = 0; i < noise.length - 4; i += 40) noise.write('LSR1', i)
    t.false(isRecording(noise))
    const bytes = Buffer.concat([noise, three[0], noise, three[1], three[2], noise])
    const { blocks, missing } = readIn(bytes, 1 + round * 13)
    t.deepEqual(blocks.map(({ number }) => number), [1, 2, 3])
    t.is(missing.skipped, 3 * noise.length)
  }
  t.false(isRecording(Buffer.alloc(0)))
  t.false(isRecording(Buffer.from('{"name":"LSR1"}\n')))
  t.true(isRecording(whole))
  t.true(isRecording(whole.subarray(10)), 'its first block is torn')
})

test('blocks of several sources are separated, and duplicates are read once', (t) => {
  const other = [made({ number: 1, source: 2 }), made({ number: 2, source: 2, first: 3 })]
  const order = [three[0], other[0], three[1], other[0], other[1], three[1], three[2]]
  const { blocks, missing } = readIn(Buffer.concat(order))
  t.deepEqual(blocks.map(({ source, number }) => [source, number]), [[1, 1], [2, 1], [1, 2], [2, 2], [1, 3]])
  t.is(missing.repeated, 2)
  const sentences = describeMissing(missing, (source) => `process ${source}`)
  t.deepEqual(sentences, ['process 2: has no end; it was killed, or still runs'])
})

test('data lost by the writer and missing blocks are reported', (t) => {
  const { missing } = readIn(Buffer.concat([
    made({ number: 1, first: 1, entries: 2 }),
    made({ number: 2, first: 103, entries: 2, lost: 100 }),
    made({ number: 5, first: 110, entries: 2, flags: LAST })
  ]))
  t.deepEqual(describeMissing(missing, () => 'process 9'), ['process 9: 105 entries are missing, 2 blocks of the file'])
})

test('entry numbers may wrap around', (t) => {
  const { missing } = readIn(Buffer.concat([
    made({ number: 1, first: 0x7fffffff, entries: 2 }),
    made({ number: 2, first: -0x7fffffff, entries: 1, flags: LAST })
  ]))
  t.is(missing.sources.get(1)?.entries, 0)
})

test('rotated files are read in chronological order', async (t) => {
  const dir = folder(t)
  const names = ['app.rec', 'app.rec.1', 'app.rec.2'].map((name) => path.join(dir, name))
  fs.writeFileSync(names[0], made({ number: 3, first: 6, flags: REPEATS | LAST, now: 30 }))
  fs.writeFileSync(names[1], made({ number: 2, first: 3, entries: 3, now: 20 }))
  fs.writeFileSync(names[2], three[0])
  t.deepEqual(inOrder(names), [names[2], names[1], names[0]])
  const reader = new BlockReader()
  const numbers = []
  for (const name of inOrder(names)) {
    for await (const { number } of readBlocks(fs.createReadStream(name), reader)) numbers.push(number)
  }
  t.deepEqual(numbers, [1, 2, 3])
  t.deepEqual(describeMissing(reader.missing, String), [])
})

test('a file is followed while it grows, is rotated or truncated', async (t) => {
  const name = path.join(folder(t), 'app.rec')
  fs.writeFileSync(name, three[0])
  const end = new AbortController()
  const read = readBlocks(follow(name, end.signal))
  const next = async () => (await read.next()).value.number
  t.is(await next(), 1)
  fs.appendFileSync(name, three[1].subarray(0, 70))
  setTimeout(() => fs.appendFileSync(name, three[1].subarray(70)), 150)
  t.is(await next(), 2)
  fs.renameSync(name, `${name}.1`)
  fs.writeFileSync(name, three[2])
  t.is(await next(), 3)
  fs.truncateSync(name)
  setTimeout(() => fs.appendFileSync(name, made({ number: 4, first: 6, entries: 0 })), 250)
  t.is(await next(), 4)
  setTimeout(() => end.abort(), 50)
  t.true((await read.next()).done)
})
