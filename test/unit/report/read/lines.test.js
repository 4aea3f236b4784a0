'use strict'

const test = require('ava')
const { Readable } = require('node:stream')
const { gzipSync } = require('node:zlib')
const { LineSplitter, decompressed, MAX_LINE_BYTES } = require('../../../../report/read/sources')

/**
 * Returns the lines of pieces, and whether the last line had no end.
 * @param {Array<string | Buffer>} pieces
 */
function splitOf (pieces) {
  /** @type {Array<[number, string]>} */
  const lines = []
  const splitter = new LineSplitter({
    line: (bytes, start, end, number) => lines.push([number, bytes.toString('utf8', start, end)]),
    overlong: (number) => lines.push([number, 'too long'])
  })
  for (const piece of pieces) splitter.push(Buffer.from(piece))
  return { lines, unfinished: splitter.end() }
}

test('lines are counted from 1, including empty ones, and have no line feed', (t) => {
  t.deepEqual(splitOf(['a\n\nb\r\n\r\nc\n']), { lines: [[1, 'a'], [3, 'b'], [5, 'c']], unfinished: false })
})

test('the last line may lack its line feed', (t) => {
  t.deepEqual(splitOf(['a\nb']), { lines: [[1, 'a'], [2, 'b']], unfinished: true })
  t.deepEqual(splitOf(['']), { lines: [], unfinished: false })
})

test('a line may come in any chunks, even split within a character', (t) => {
  const bytes = Buffer.from('é中\u{1f600}\r\nsecond')
  const whole = { lines: [[1, 'é中\u{1f600}'], [2, 'second']], unfinished: true }
  for (let cut = 0; cut <= bytes.length; cut++) {
    t.deepEqual(splitOf([bytes.subarray(0, cut), bytes.subarray(cut)]), whole)
  }
  t.deepEqual(splitOf([...bytes].map((byte) => Buffer.of(byte))), whole)
})

test('a byte order mark is removed from the first line only', (t) => {
  t.deepEqual(splitOf(['\ufeffa\n\ufeffb\n']).lines, [[1, 'a'], [2, '\ufeffb']])
})

test('a line beyond the limit is reported, and the rest is read', (t) => {
  const part = Buffer.alloc(MAX_LINE_BYTES / 2 + 1, 'x')
  t.deepEqual(splitOf([part, part, 'x\nb\n']).lines, [[1, 'too long'], [2, 'b']])
  t.is(splitOf([Buffer.alloc(MAX_LINE_BYTES, 'x'), '\n']).lines[0][1].length, MAX_LINE_BYTES)
})

/** @param {Buffer[]} pieces */
async function bytesOf (pieces) {
  const read = []
  for await (const piece of decompressed(Readable.from(pieces))) read.push(piece)
  return Buffer.concat(read).toString()
}

test('gzip is decompressed, other bytes are unchanged', async (t) => {
  const packed = gzipSync('a\nb\n')
  t.is(await bytesOf([packed.subarray(0, 5), packed.subarray(5)]), 'a\nb\n')
  t.is(await bytesOf([Buffer.from('a\n'), Buffer.from('b\n')]), 'a\nb\n')
  t.is(await bytesOf([]), '')
})

test('damaged gzip is an error', async (t) => {
  await t.throwsAsync(bytesOf([gzipSync('abc').subarray(0, 15)]))
})
