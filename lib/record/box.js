'use strict'

// The black box of the option `box`: what this thread did last, in a file that is mapped into memory and
// survives the process. It holds the ring of the run log itself, blocks of older entries with their texts,
// and a table of open requests. A normal end removes the file.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const process = require('node:process')
const { parseBox } = require('../box-option')
const { now, originMs } = require('../core/clock')
const loopIterations = require('../core/loop-iterations')
const runLog = require('../core/run-log')
const { BYTES: RING_BYTES } = require('../core/run-log-words')
const { lineOf } = require('../encoding/serialize')
const { attempt, makeDirectory } = require('../files')
const { openWaits } = require('../handles/requests-in-flight')
const { isMainThread } = require('../passing/threads')
const spans = require('../spans/spans')
const { originAt } = require('../spans/wall-clock')
const { loadBinding } = require('../stacks/binding')
const { messageOf, warn } = require('../warnings')
const { BlockMaker } = require('./block-maker')
const layout = require('./box-layout')
const { BoxBuffers } = require('./box-buffers')
const { BOX_NAME, MAX_BOXES, boxesIn } = require('./box-files')
const { atSuddenEnd, notAtSuddenEnd } = require('./ending')
const { youngBytes } = require('./heap-growth')
const { OpenTable } = require('./open-table')
const taking = require('./taking')
const texts = require('./texts')

const { HALVES, PAGE, RING, TABLE, part: at } = layout
const WORKER_BYTES = 4 << 20 // part of a worker
const SPARE_BYTES = 1 << 18 // part of a half that is kept free for the next piece
const LOOK_MS = 1000 // ms between two look-ups of what requests wait for
const LOOK_PART = 100 // these look-ups may take one part in 100 of the time
const LOOK_MIN = 500 // ms that a request has been open before its waits are looked up
const MODE = 0o600
/** @type {Record<string, number>} */
const signals = os.constants.signals
/** abnormal ends @type {unknown[]} */
const CRASHES = [
  'abort',
  ...['SIGKILL', 'SIGABRT', 'SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGTRAP', 'SIGSYS']
    .flatMap((name) => [name, signals[name]])
]
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR } = fs.constants

/**
 * @typedef {object} BoxBinding native/box.cc
 * @property {(fd: number, bytes: number) => Buffer | number | undefined} open
 * @property {(bytes: number) => Buffer | number | undefined} addPart
 * @property {() => void} close
 * @property {(fd: number) => boolean} isHeld
 * @property {() => number} outside bytes outside of the heap
 *
 * @typedef {object} BoxStats
 * @property {string | undefined} file undefined in a worker, which has a part of its process's file
 * @property {number} bytes of this thread's part
 * @property {number} written bytes of blocks so far, including overwritten ones
 * @property {number} lost entries that came too fast
 */

/** @implements {taking.Consumer} */
class Box {
  #maker = new BlockMaker()
  /** @type {Buffer} of this thread */
  #part
  #view
  #half = 0
  #end = 0 // bytes in this half
  #written = 0
  #lost = 0
  /** waits of open requests that are in no block yet */
  #waits = ''
  #lookAt = 0 // ms of the clock; no earlier than this
  #isLookDue = false
  /** a look-up needs a block, even without entries */
  #isLooking = false
  #isOver = false
  #table
  /** sources of Buffers, once memory is short @type {BoxBuffers | undefined} */
  #buffers
  /** @type {Buffer | undefined} the first page of the file */
  #head
  /** @type {string | undefined} */
  #file
  /** @type {bigint | undefined} */
  #inode

  /**
   * @param {string} option
   * @param {Buffer} memory the whole file, or the part of a worker
   * @param {string} [file] undefined in a worker
   * @param {bigint} [inode] of the file
   */
  constructor (option, memory, file, inode) {
    this.option = option
    this.#inode = inode
    this.#file = file
    this.#head = file === undefined ? undefined : memory.subarray(0, PAGE)
    this.#part = file === undefined ? memory : memory.subarray(PAGE)
    const part = this.#part
    this.#view = new DataView(part.buffer, part.byteOffset, part.length)
    part.fill(0, TABLE, HALVES)
    this.#table = new OpenTable(part.subarray(TABLE, RING), part)
    this.#set('half', 0)
    this.#setWritten(0)
    this.#view.setUint32(at.written + 4, 0, true)
    this.#set('source', this.#maker.source)
    this.#set('thread', isMainThread() ? 0 : require('node:worker_threads').threadId)
    this.#view.setFloat64(at.young, youngBytes(), true)
    this.#view.setFloat64(at.originMs, originMs, true)
    this.#view.setFloat64(at.origin, originAt(now()), true)
    this.#set('magic', layout.PART_MAGIC)
    this.#set('leftOut', 0)
    this.#set('buffersBytes', 0)
    this.memory = new Int32Array(part.buffer, part.byteOffset + RING, RING_BYTES / 4)
    taking.add(this)
    runLog.tellAll(true)
    spans.setOpenTable(this.#table)
    atSuddenEnd(this.#suddenEnd)
  }

  /** @param {Exclude<keyof typeof at, 'written'>} name @param {number} value */
  #set (name, value) {
    this.#view.setUint32(at[name], value, true)
  }

  /** @param {number} bytes in the present half */
  #setWritten (bytes) {
    this.#end = bytes
    this.#view.setUint32(at.written + 4 * this.#half, bytes, true)
  }

  /** @type {import('./ending').Work} */
  #suddenEnd = (cause) => {
    if (!CRASHES.includes(cause)) this.close()
  }

  /** Changes to the other half early enough for all texts. */
  prepare () {
    if (this.#end > layout.halfOf(this.#part.length) - SPARE_BYTES) this.#turn()
  }

  #turn () {
    this.#half = 1 - this.#half
    this.#setWritten(0)
    this.#set('half', this.#half)
    taking.repeat()
    runLog.forgetTold()
  }

  isWaiting = () => this.#isLooking

  /** Schedules a look-up of what open requests wait for, and of open handles. */
  taken () {
    if (this.#buffers === undefined && this.#view.getUint32(at.isShort, true) !== 0) {
      const native = /** @type {BoxBinding} */ (binding())
      this.#buffers = new BoxBuffers(this.#part, this.#table, native.outside)
    }
    if (this.#isLookDue || !isLookWanted()) return
    this.#isLookDue = true
    loopIterations.scheduleWithin(this.#look, Math.max(LOOK_MS, this.#lookAt - now()))
  }

  #look = () => {
    this.#isLookDue = false
    if (this.#isOver || !isLookWanted()) return
    this.#isLooking = true
    if (texts.hasSpanOpenFor(LOOK_MIN)) {
      const start = now()
      this.#waits = attempt(() => `${lineOf(openWaits(false), () => {})}\n`) ?? ''
      this.#lookAt = now() + (now() - start) * LOOK_PART
    }
    taking.take({ isWithin: false })
  }

  /** Stores a block. @param {taking.Piece} piece */
  take (piece) {
    const waits = this.#waits
    this.#waits = ''
    this.#isLooking = false
    const block = this.#maker.make(piece, waits)
    const size = layout.halfOf(this.#part.length)
    this.#lost += piece.lost
    if (this.#end + block.length > size) this.#turn()
    if (block.length > size) {
      this.#lost += piece.count
    } else {
      block.copy(this.#part, HALVES + this.#half * size + this.#end)
      this.#written += block.length
      this.#setWritten(this.#end + block.length)
    }
  }

  /** The process has ended normally, or the option was turned off. */
  close () {
    if (this.#isOver) return
    this.#isOver = true
    notAtSuddenEnd(this.#suddenEnd)
    this.#buffers?.close()
    spans.setOpenTable(undefined)
    runLog.tellAll(false)
    taking.remove(this)
    if (this.#head === undefined) this.#part.writeUInt32LE(0, at.magic)
    else this.#head.writeUInt32LE(1, layout.head.isOver)
    binding()?.close()
    const file = this.#file
    if (file !== undefined && !parseBox(this.option).keep) remove(file, this.#inode)
  }

  /** @returns {BoxStats} */
  stats () {
    return { file: this.#file, bytes: this.#part.length, written: this.#written, lost: this.#lost }
  }
}

const isLookWanted = () => texts.hasOpenSpans() || texts.isCountDue()

/** @returns {BoxBinding | undefined} */
const binding = () => /** @type {any} */ (loadBinding().binding)?.box

/**
 * Opens the box of this process, or a part of it in a worker.
 * @param {string} option
 * @returns {Box | undefined} undefined after a warning
 */
function openBox (option) {
  const native = binding()
  if (native === undefined) {
    warn('BOX', 'there is no black box: it needs the native engine, see trace.doctor().')
    return undefined
  }
  try {
    return isMainThread() ? openFile(option, native) : openPart(option, native)
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error)
    warn(code === undefined ? 'BOX' : `BOX_${code}`, `there is no black box: ${messageOf(error)}.`)
    return undefined
  }
}

/** @param {string} option @param {BoxBinding} native @returns {Box} */
function openFile (option, native) {
  const { directory, bytes } = parseBox(option)
  checkDirectory(directory)
  const dead = boxesIn(directory).filter(({ isDead }) => isDead)
  if (dead.length >= MAX_BOXES) {
    throw new Error(`${directory} has ${dead.length} boxes of processes that died, which is the limit`)
  }
  const { file, fd } = create(directory)
  const { ino } = fs.fstatSync(fd, { bigint: true })
  try {
    const box = begin(option, native.open(fd, bytes), file, ino)
    tellDead(dead.map(({ file }) => file))
    return box
  } catch (error) {
    native.close()
    remove(file, ino)
    throw error
  } finally {
    fs.closeSync(fd)
  }
}

/** @param {string} file @param {bigint | undefined} inode that the file must still have */
function remove (file, inode) {
  attempt(() => { if (fs.lstatSync(file, { bigint: true }).ino === inode) fs.unlinkSync(file) })
}

/**
 * @param {string} option
 * @param {Buffer | number | undefined} memory or the number of an error
 * @param {string} file
 * @param {bigint} inode
 */
function begin (option, memory, file, inode) {
  if (memory === undefined || typeof memory === 'number') {
    throw systemError(memory, `${file} cannot be allocated`)
  }
  const { head } = layout
  memory.writeUInt32LE(layout.VERSION, head.version)
  memory.writeUInt32LE(process.pid, head.pid)
  memory.writeDoubleLE(process.constrainedMemory?.() ?? 0, head.memoryLimit)
  memory.writeUInt32LE(layout.HEAD_MAGIC, head.magic)
  return new Box(option, memory, file, inode)
}

/** @param {string} option @param {BoxBinding} native @returns {Box | undefined} */
function openPart (option, native) {
  const memory = native.addPart(WORKER_BYTES)
  if (memory === undefined) return undefined // the main thread has no box
  if (typeof memory === 'number') throw systemError(memory, 'it cannot grow for a worker')
  return new Box(option, memory)
}

/** @param {string[]} files */
function tellDead (files) {
  if (files.length === 0) return
  const names = files.length === 1 ? '1 black box of a process' : `${files.length} black boxes of processes`
  warn('BOX_DEAD', `${names} that died: longstack report ${files.slice(0, 3).join(' ')}` +
    `${files.length > 3 ? ' …' : ''}`)
}

/** Creates the directory if there is none; only this user may write to it. @param {string} name */
function checkDirectory (name) {
  makeDirectory(name)
  const { uid, mode } = fs.statSync(name)
  if (uid !== process.geteuid?.()) throw new Error(`${name} belongs to another user: use a directory in it`)
  if ((mode & 0o022) !== 0) throw new Error(`others may write to ${name}: use a directory in it`)
}

/** @param {string} directory @returns {{ file: string, fd: number }} a new file */
function create (directory) {
  for (let i = 1; ; i++) {
    const file = path.resolve(directory, `${BOX_NAME}-${process.pid}${i === 1 ? '' : `.${i}`}.box`)
    try {
      return { file, fd: fs.openSync(file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, MODE) }
    } catch (error) { // in a container, any process may be number 1
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST' || i > 2 * MAX_BOXES) throw error
    }
  }
}

/** @param {number | undefined} number @param {string} text */
function systemError (number, text) {
  const { errno } = require('node:os').constants
  const [code] = Object.entries(errno).find(([, value]) => value === number) ?? ['ERROR']
  return Object.assign(new Error(`${text} (${code})`), { code })
}

module.exports = { Box, openBox }
