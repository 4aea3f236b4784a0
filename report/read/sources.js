'use strict'

// Opens files and standard input. A file can be read twice; a pipe only if its bytes were kept, which is done
// up to a limit.

const fs = require('node:fs')
const { Readable } = require('node:stream')

const CHUNK_BYTES = 1 << 20
const MAX_KEPT_BYTES = 32 << 20

/**
 * Gives the bytes of a file by its name; `-` is standard input.
 * @typedef {(name: string) => AsyncIterable<Buffer>} Source
 */

/** @type {Source} */
function open (name) {
  return name === '-' ? process.stdin : fs.createReadStream(name, { highWaterMark: CHUNK_BYTES })
}

/**
 * @param {string} name
 * @returns {fs.BigIntStats | undefined} undefined for standard input, and where reading the file will fail
 */
function stats (name) {
  try {
    return name === '-' ? undefined : fs.statSync(name, { bigint: true })
  } catch {
    return undefined
  }
}

/** Returns whether it is a file that can be read again. @param {string} name */
function isFile (name) {
  return stats(name)?.isFile() === true
}

/** Returns whether it exists and can be read only once. @param {string} name */
function isPipe (name) {
  const stat = stats(name)
  return stat !== undefined && !stat.isFile() && !stat.isDirectory()
}

/** Sources that can be read twice. */
class RereadableSources {
  /** @type {Map<string, Buffer[]>} */
  #kept = new Map()
  #size = 0

  /** @type {Source} */
  first = (name) => isFile(name) ? open(name) : this.#keep(name)

  /** @type {Source} */
  second = (name) => isFile(name) ? open(name) : Readable.from(this.#kept.get(name) ?? [])

  /** Whether more came through pipes than was kept. */
  get isIncomplete () {
    return this.#size > MAX_KEPT_BYTES
  }

  /** @param {string} name */
  async * #keep (name) {
    /** @type {Buffer[]} */
    const chunks = []
    this.#kept.set(name, chunks)
    for await (const chunk of open(name)) {
      this.#size += chunk.length
      if (this.isIncomplete) this.#kept.clear()
      else chunks.push(chunk)
      yield chunk
    }
  }
}

module.exports = { open, stats, isPipe, RereadableSources }
