'use strict'

// Where bytes come from. A file can be read again; what came through a pipe only if it was kept, which is done as long
// as it is not much.

const fs = require('node:fs')

const PIECE = 1 << 20 // bytes read at once
const KEPT = 32 << 20

/** @typedef {(name: string) => AsyncIterable<Buffer>} Source gives the bytes of a file by its name; `-` is standard input */

/** @type {Source} */
function open (name) {
  return name === '-' ? process.stdin : fs.createReadStream(name, { highWaterMark: PIECE })
}

/** @param {string} name @returns {fs.BigIntStats | undefined} nothing where reading it will say why */
function stats (name) {
  try {
    return name === '-' ? undefined : fs.statSync(name, { bigint: true })
  } catch {
    return undefined
  }
}

/** Is it a file that can be read again? @param {string} name */
function isFile (name) {
  return stats(name)?.isFile() === true
}

/** Is it there, and can be read but once? @param {string} name */
function isPipe (name) {
  const stat = stats(name)
  return stat !== undefined && !stat.isFile() && !stat.isDirectory()
}

/** Sources that can be read twice. */
function createTwice () {
  /** @type {Map<string, Buffer[]>} */
  const kept = new Map()
  let size = 0

  /** @param {string} name @param {Buffer[]} pieces */
  async function * keeping (name, pieces) {
    kept.set(name, pieces)
    for await (const piece of open(name)) {
      size += piece.length
      if (size > KEPT) kept.clear()
      else pieces.push(piece)
      yield piece
    }
  }

  return {
    /** @type {Source} */
    first: (name) => isFile(name) ? open(name) : keeping(name, []),

    /** @type {Source} */
    second: (name) => isFile(name) ? open(name) : piecesOf(kept.get(name) ?? []),

    /** More came through a pipe than was kept. */
    lost: () => size > KEPT
  }
}

/** @param {Buffer[]} pieces */
async function * piecesOf (pieces) {
  yield * pieces
}

module.exports = { open, stats, isPipe, createTwice }
