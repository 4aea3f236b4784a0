'use strict'

// What the system tells about another process, before anything is sent to it: whether it is one of Node, and
// which it has started. All of it from /proc on
// Linux, by ps and lsof on macOS.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { stateOfName } = require('../files')

const NODE_NAME = /node|electron/i

/** A sentence for the user: the process cannot be asked. */
class RefusedError extends Error {}

/** The same: it has closed its connection, as one does that ends. */
class GoneError extends RefusedError {}

/**
 * Checks that a process may be asked.
 * @param {number} pid
 * @throws {RefusedError}
 */
function checkProcess (pid) {
  if (process.platform === 'win32') {
    throw new RefusedError('A running process can be asked on Linux and macOS only; on Windows run the ' +
      'program with longstack profile app.js.')
  }
  if (pid === process.pid) throw new RefusedError(`Process ${pid} is this command itself.`)
  try {
    process.kill(pid, 0)
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error)
    if (code === 'ESRCH') throw new RefusedError(`There is no process ${pid}.`)
    throw new RefusedError(`Process ${pid} belongs to another user.`)
  }
  const program = programOf(pid)
  if (program !== undefined && !NODE_NAME.test(path.basename(program))) {
    throw new RefusedError(`Process ${pid} is not a Node process: it runs ${program}.`)
  }
  if (isElsewhere(pid)) {
    throw new RefusedError(`Process ${pid} has another network, as in a container: run longstack there, or ` +
      'set LONGSTACK_SOCKET.')
  }
}

/** Returns whether a process has ended, or does so. @param {number} pid */
function hasEnded (pid) {
  if (process.platform === 'linux' && /^[ZX]$/.test(stateOf(pid))) return true
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'ESRCH'
  }
}

/** @param {number} pid */
const endedSentence = (pid) => `Process ${pid} has ended.`

/**
 * Returns the state that Linux tells, as a letter.
 * @param {number} pid
 * @returns {string} empty: it has ended, or cannot be seen
 */
function stateOf (pid) {
  return /^\d+ \(.*\) (\S)/s.exec(read(`/proc/${pid}/stat`))?.[1] ?? ''
}

/** Returns the file that a process runs. @param {number} pid @returns {string | undefined} */
function programOf (pid) {
  try {
    if (process.platform === 'linux') return fs.readlinkSync(`/proc/${pid}/exe`)
    return execFileSync('ps', ['-o', 'comm=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  } catch {
    return undefined
  }
}

/** Returns whether the loopback interface of a process is not this one's. @param {number} pid */
function isElsewhere (pid) {
  try {
    return fs.readlinkSync(`/proc/${pid}/ns/net`) !== fs.readlinkSync('/proc/self/ns/net')
  } catch {
    return false
  }
}

/**
 * Lists the processes of Node that a process has started, and those that they have, by their program.
 * @param {number} pid
 * @returns {number[]} without this command itself
 */
function nodeDescendants (pid) {
  /** by parent @type {Map<number, number[]>} */
  const children = new Map()
  for (const [child, parent] of parents()) {
    const present = children.get(parent)
    if (present === undefined) children.set(parent, [child])
    else present.push(child)
  }
  const found = [pid]
  for (const parent of found) {
    found.push(...(children.get(parent) ?? []).filter((child) => !found.includes(child)))
  }
  return found.slice(1).filter((child) => child !== process.pid && isNode(child))
}

/** @returns {Array<[number, number]>} each process, and its parent */
function parents () {
  try {
    if (process.platform !== 'linux') {
      const text = execFileSync('ps', ['-axo', 'pid=,ppid='], { encoding: 'utf8' })
      const rows = text.trim().split('\n').map((line) => line.trim().split(/\s+/).map(Number))
      return /** @type {Array<[number, number]>} */ (rows)
    }
    const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    /** @type {Array<[number, number]>} */
    const pairs = pids.map((name) =>
      [Number(name), Number(/^\d+ \(.*\) \S (\d+)/s.exec(read(`/proc/${name}/stat`))?.[1] ?? 0)])
    return pairs
  } catch {
    return []
  }
}

/** @param {number} pid */
function isNode (pid) {
  const program = programOf(pid)
  return program !== undefined && NODE_NAME.test(path.basename(program))
}

/** Returns what a process calls itself: in a namespace of its own, another number. @param {number} pid */
function pidInside (pid) {
  const inside = /^NSpid:.*?(\d+)\s*$/m.exec(read(`/proc/${pid}/status`))?.[1]
  return inside === undefined ? pid : Number(inside)
}

/** Returns the user of a process. @param {number} pid @returns {number | undefined} undefined: not known */
function ownerOf (pid) {
  const uid = /^Uid:\s*\d+\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1]
  return uid === undefined ? undefined : Number(uid)
}

/**
 * Lists the sockets of LONGSTACK_SOCKET on which a process listens.
 * @param {number} pid
 * @returns {string[]} those of its user
 */
function socketsOf (pid) {
  const name = /(?:^|\0)LONGSTACK_SOCKET=([^\0]+)/.exec(read(`/proc/${pid}/environ`))?.[1]
  if (name === undefined) return []
  const own = socketFiles(path.resolve(readLink(`/proc/${pid}/cwd`), name))
    .filter((file) => path.basename(file).startsWith(`${pidInside(pid)}.`))
  const owner = BigInt(ownerOf(pid) ?? -1)
  return own.filter((file) => stateOfName(file)?.uid === owner)
}

/**
 * Lists the sockets of a LONGSTACK_SOCKET, as lib/ask/socket-files.js makes them.
 * @param {string} name or the path of one of the sockets
 * @returns {string[]}
 */
function socketFiles (name) {
  const directory = `${name}.longstack`
  try {
    const names = fs.readdirSync(directory).filter((file) => /^\d+\.\d+(\.[a-z0-9]+)?$/.test(file))
    return names.map((file) => path.join(directory, file))
  } catch {
    return [name]
  }
}

/** @param {string} file @returns {string} empty where it cannot be read */
function read (file) {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** @param {string} file */
function readLink (file) {
  try {
    return fs.readlinkSync(file)
  } catch {
    return ''
  }
}

module.exports = {
  GoneError,
  RefusedError,
  endedSentence,
  hasEnded,
  stateOf,
  checkProcess,
  isNode,
  nodeDescendants,
  ownerOf,
  pidInside,
  programOf,
  read,
  readLink,
  socketFiles,
  socketsOf
}
