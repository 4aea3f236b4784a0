'use strict'

// What the system tells about other processes, before anything is sent to them: whether one is of Node, which
// it has started, which sockets it has. All of it from /proc on Linux, by ps and lsof on macOS.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const { isIPv6 } = require('node:net')
const path = require('node:path')
const { stateOfName } = require('../files')
const { directoryOf, parseName } = require('./socket-names')

const NODE_NAME = /node|electron/i
const LISTEN = '0A' // state of a socket in /proc/net/tcp, see include/net/tcp_states.h

/**
 * @typedef {{ host: string, port: number }} Address
 * @typedef {{ local: Address, remote: Address, isListening: boolean, inode: string }} TcpSocket
 */

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
    return process.platform === 'linux'
      ? fs.readlinkSync(`/proc/${pid}/exe`)
      : run('ps', '-o', 'comm=', '-p', String(pid)).trim()
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
    if (process.platform === 'linux') {
      return allPids().map((pid) =>
        [pid, Number(/^\d+ \(.*\) \S (\d+)/s.exec(read(`/proc/${pid}/stat`))?.[1] ?? 0)])
    }
    const rows = run('ps', '-axo', 'pid=,ppid=').trim().split('\n')
    return /** @type {any} */ (rows.map((line) => line.trim().split(/\s+/).map(Number)))
  } catch {
    return []
  }
}

/** Lists the processes of the machine. @returns {number[]} on Linux alone */
const allPids = () => fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)

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
    .filter((file) => parseName(path.basename(file))?.pid === pidInside(pid))
  const owner = BigInt(ownerOf(pid) ?? -1)
  return own.filter((file) => stateOfName(file)?.uid === owner)
}

/**
 * Lists the sockets of a LONGSTACK_SOCKET.
 * @param {string} name or the path of one of the sockets
 * @returns {string[]}
 */
function socketFiles (name) {
  const directory = directoryOf(name)
  try {
    const names = fs.readdirSync(directory).filter((file) => parseName(file) !== undefined)
    return names.map((file) => path.join(directory, file))
  } catch {
    return [name]
  }
}

/**
 * Lists the TCP sockets of a network on Linux.
 * @param {string | number} [pid] of a process that is in it
 * @returns {TcpSocket[]}
 */
function tcpSockets (pid = 'self') {
  const rows = ['tcp', 'tcp6'].flatMap((table) => read(`/proc/${pid}/net/${table}`).split('\n').slice(1))
  return rows.filter(Boolean).map((row) => {
    const [, local, remote, state, , , , , , inode] = row.trim().split(/\s+/)
    return { local: addressOf(local), remote: addressOf(remote), isListening: state === LISTEN, inode }
  })
}

/** @param {string} text `0100007F:240D`: words of the address in the order of the CPU @returns {Address} */
function addressOf (text) {
  const [address, port] = text.split(':')
  const bytes = (address.match(/.{8}/g) ?? []).flatMap((word) =>
    (word.match(/../g) ?? []).map((byte) => parseInt(byte, 16)).reverse())
  if (bytes.length === 4) return { host: bytes.join('.'), port: parseInt(port, 16) }
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i] << 8) | bytes[2 * i + 1]).toString(16))
  const isMapped = groups.slice(0, 6).join() === '0,0,0,0,0,ffff'
  const host = isMapped ? bytes.slice(12).join('.') : plainHost(groups.join(':'))
  return { host, port: parseInt(port, 16) }
}

/** Returns an address as the system writes it: of IPv4 in IPv6, that of IPv4. @param {string} host */
function plainHost (host) {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(host)?.[1]
  if (mapped !== undefined) return mapped
  return isIPv6(host) ? new URL(`http://[${host}]`).hostname.slice(1, -1) : host
}

/** @param {number} pid @returns {Set<string> | undefined} undefined: they may not be seen */
function socketInodes (pid) {
  try {
    const links = fs.readdirSync(`/proc/${pid}/fd`).map((name) => readLink(`/proc/${pid}/fd/${name}`))
    return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT' ? new Set() : undefined
  }
}

/**
 * Finds the processes that have sockets open, on Linux.
 * @param {string[]} inodes
 * @returns {{ pids: number[], isComplete: boolean }} isComplete: no process was hidden
 */
function processesWith (inodes) {
  const looks = allPids().map((pid) => ({ pid, own: socketInodes(pid) }))
  const pids = looks.filter(({ own }) => inodes.some((inode) => own?.has(inode))).map(({ pid }) => pid)
  return { pids, isComplete: looks.every(({ own }) => own !== undefined) }
}

/**
 * Lists the TCP addresses that a process listens on.
 * @param {number} pid
 * @returns {Address[] | undefined} undefined: the system does not tell
 */
function listeningAddresses (pid) {
  if (process.platform !== 'linux') {
    const text = lsof('-a', '-p', String(pid), '-iTCP', '-sTCP:LISTEN', '-Fn')
    const ports = text === undefined ? undefined : [...text.matchAll(/^n.*:(\d+)$/gm)]
    return ports?.map(([, port]) => ({ host: '127.0.0.1', port: Number(port) }))
  }
  const inodes = socketInodes(pid)
  if (inodes === undefined) return undefined
  const own = tcpSockets(pid).filter(({ isListening, inode }) => isListening && inodes.has(inode))
  return own.map(({ local: { host, port } }) =>
    ({ host: host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host, port }))
}

/** @param {...string} args @returns {string | undefined} undefined: it finds nothing, or is not there */
function lsof (...args) {
  try {
    return run('lsof', '-n', '-P', ...args)
  } catch {
    return undefined
  }
}

/** @param {string} program @param {...string} args @returns {string} its output */
function run (program, ...args) {
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
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
  checkProcess,
  endedSentence,
  hasEnded,
  isNode,
  listeningAddresses,
  lsof,
  nodeDescendants,
  ownerOf,
  pidInside,
  plainHost,
  processesWith,
  programOf,
  read,
  readLink,
  socketFiles,
  socketsOf,
  stateOf,
  tcpSockets
}
