'use strict'

// Facts about other processes, read from the system before anything is sent to them: whether a process runs
// Node, which processes it started, which sockets it has. They come from /proc on Linux, from ps and lsof on
// macOS. Also finds the target of a command: a process by its PID, the processes behind a port or an address,
// or those that listen on a LONGSTACK_SOCKET.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const { SocketAddress, isIPv4, isIPv6 } = require('node:net')
const path = require('node:path')
const { UsageError, quote } = require('../cli/flags')
const { attempt, stateOfName } = require('../files')
const { groupBy } = require('../group-by')
const { directoryOf, parseName } = require('./protocol')

const NODE_NAME = /node|electron/i
const LISTEN = '0A' // state of a socket in /proc/net/tcp, see include/net/tcp_states.h
const CLOSE_WAIT = '08' // closed by the peer
const MAX_KINDS = 10
const TICKS = 100 // per second, the unit of times in /proc/PID/stat (USER_HZ of Linux)
const LOCALHOST = ['127.0.0.1', '::1']
const ANY = ['0.0.0.0', '::', '*']

/**
 * @typedef {{ host: string, port: number }} Address
 * @typedef {{ local: Address, remote: Address, isListening: boolean, isClosed: boolean,
 *   inode: string }} TcpSocket
 *
 * @typedef {object} Target
 * @property {number[]} pids
 * @property {string} [socket] a LONGSTACK_SOCKET
 * @property {End} [end] local or remote end of connections
 * @property {Array<{ pid: number, program: string | undefined }>} others processes at this end that are not
 *   Node
 *
 * @typedef {{ hosts: string[] | undefined, port: number, text: string }} End hosts: undefined for any
 */

/** A sentence for the user: the process cannot be queried. */
class RefusedError extends Error {}

/** The same for a process that closed its connection, as it does when it ends. */
class GoneError extends RefusedError {}

/** Checks that processes of this system can be queried. @throws {RefusedError} */
function checkSystem () {
  if (process.platform !== 'win32') return
  throw new RefusedError('A running process can be asked on Linux and macOS only; on Windows run the ' +
    'program with longstack profile app.js.')
}

/**
 * Checks that a process may be queried.
 * @param {number} pid
 * @throws {RefusedError}
 */
function checkProcess (pid) {
  checkSystem()
  if (pid === process.pid) throw new RefusedError(`Process ${pid} is this command itself.`)
  const code = signalError(pid)
  if (code === 'EPERM') {
    const orRoot = process.platform === 'linux' ? ', or as root' : ''
    throw new RefusedError(`Process ${pid} belongs to another user: run longstack as that user${orRoot}.`)
  }
  if (code !== undefined) throw new RefusedError(`There is no process ${pid}.`)
  if (hasEnded(pid)) throw new RefusedError(endedSentence(pid))
  const program = programOf(pid)
  if (program !== undefined && !NODE_NAME.test(path.basename(program))) {
    throw new RefusedError(`Process ${pid} is not a Node process: it runs ${program}.`)
  }
  const network = readLink(`/proc/${pid}/ns/net`)
  // It has another loopback interface
  if (network !== '' && network !== readLink('/proc/self/ns/net')) {
    throw new RefusedError(`Process ${pid} has another network, as in a container: run longstack there, or ` +
      'set LONGSTACK_SOCKET.')
  }
}

/** Returns whether a process has ended or is ending. @param {number} pid */
function hasEnded (pid) {
  return (process.platform === 'linux' && /^[ZX]$/.test(stateOf(pid))) || signalError(pid) === 'ESRCH'
}

/** Returns why no signal can be sent to a process. @param {number} pid @returns {string | undefined} */
function signalError (pid) {
  if (pid === 0) return 'ESRCH' // to the system, 0 means all processes of this command's group
  try {
    process.kill(pid, 0)
  } catch (error) {
    return String(/** @type {NodeJS.ErrnoException} */ (error).code)
  }
}

/** @param {number} pid */
const endedSentence = (pid) => `Process ${pid} has ended.`

/** @param {string} name a word of the command line, all of whose processes have ended */
const endedError = (name) =>
  new GoneError(/^\d+$/.test(name) ? endedSentence(Number(name)) : `What ${name} named has ended.`)

/**
 * Returns the state letter that Linux reports.
 * @param {number} pid
 * @returns {string} empty if the process has ended or cannot be seen
 */
const stateOf = (pid) => statFields(pid)[1] ?? ''

/**
 * Returns how long a process has been running, on Linux.
 * @param {number} pid
 * @returns {number} in seconds; NaN if unknown
 */
function ageOf (pid) {
  return Number(read('/proc/uptime').split(' ')[0] || NaN) - Number(statFields(pid)[20]) / TICKS
}

/**
 * Returns the fields of /proc/PID/stat after the name, which may contain anything (proc_pid_stat(5)).
 * @param {number} pid
 * @returns {string[]} [1]: the state, [2]: the parent
 */
const statFields = (pid) => read(`/proc/${pid}/stat`).replace(/^.*\)/s, '').split(' ')

/** Returns the executable of a process. @param {number} pid @returns {string | undefined} */
function programOf (pid) {
  const program = process.platform === 'linux'
    ? readLink(`/proc/${pid}/exe`)
    : run('ps', '-o', 'comm=', '-p', String(pid)).trim()
  return program === '' ? undefined : program
}

/**
 * Lists the descendants of a process that run Node, by the name of their executable.
 * @param {number} pid
 * @returns {number[]} without this command itself
 */
function nodeDescendants (pid) {
  const pairs = parents()
  const family = [pid]
  for (const parent of family) {
    for (const [child, itsParent] of pairs) {
      if (itsParent === parent && !family.includes(child)) family.push(child)
    }
  }
  return family.slice(1).filter((child) => child !== process.pid && isNode(child))
}

/** @returns {number[][]} pairs of a process and its parent */
function parents () {
  return process.platform === 'linux'
    ? allPids().map((pid) => [pid, Number(statFields(pid)[2])])
    : run('ps', '-axo', 'pid=,ppid=').trim().split('\n').map((line) => line.trim().split(/\s+/).map(Number))
}

/** Lists the processes of the machine. @returns {number[]} on Linux only */
const allPids = () => fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)

/** @param {number} pid */
function isNode (pid) {
  const program = programOf(pid)
  return program !== undefined && NODE_NAME.test(path.basename(program))
}

/** Returns the pid that a process has inside its own PID namespace. @param {number} pid */
function pidInside (pid) {
  const number = /^NSpid:.*?(\d+)\s*$/m.exec(read(`/proc/${pid}/status`))?.[1]
  return number === undefined ? pid : Number(number)
}

/**
 * Lists the sockets of LONGSTACK_SOCKET on which a process listens.
 * @param {number} pid
 * @returns {string[]} those that belong to its user
 */
function socketsOf (pid) {
  const name = /(?:^|\0)LONGSTACK_SOCKET=([^\0]+)/.exec(read(`/proc/${pid}/environ`))?.[1]
  if (name === undefined) return []
  const owner = /^Uid:\s*\d+\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1]
  return socketFiles(path.resolve(readLink(`/proc/${pid}/cwd`), name)).filter((file) =>
    parseName(path.basename(file))?.pid === pidInside(pid) && String(stateOfName(file)?.uid) === owner)
}

/**
 * Lists the sockets of a LONGSTACK_SOCKET.
 * @param {string} name or the path of one of the sockets
 * @returns {string[]}
 */
function socketFiles (name) {
  const directory = directoryOf(name)
  const files = attempt(() => fs.readdirSync(directory))?.filter((file) => parseName(file) !== undefined)
  return files?.map((file) => path.join(directory, file)) ?? [name]
}

/**
 * Lists the TCP sockets of a network namespace on Linux.
 * @param {string | number} [pid] of a process in it
 * @returns {TcpSocket[]}
 */
function tcpSockets (pid = 'self') {
  const rows = ['tcp', 'tcp6'].flatMap((table) => read(`/proc/${pid}/net/${table}`).split('\n').slice(1))
  return rows.filter(Boolean).map((row) => {
    const [, local, remote, state, , , , , , inode] = row.trim().split(/\s+/)
    return {
      local: addressOf(local),
      remote: addressOf(remote),
      isListening: state === LISTEN,
      isClosed: state === CLOSE_WAIT,
      inode
    }
  })
}

/** @param {string} text `0100007F:240D`: address words in the byte order of the CPU @returns {Address} */
function addressOf (text) {
  const [address, port] = text.split(':')
  const bytes = Buffer.from(address, 'hex').swap32()
  const groups = bytes.toString('hex').replace(/....(?!$)/g, '$&:')
  return { host: bytes.length === 4 ? bytes.join('.') : plainHost(groups), port: parseInt(port, 16) }
}

/** Returns an address as the system prints it, IPv4-mapped IPv6 as IPv4. @param {string} host */
function plainHost (host) {
  if (!isIPv6(host)) return host
  return new SocketAddress({ address: host, family: 'ipv6' }).address.replace(/^::ffff:(?=\d+\.)/, '')
}

/**
 * @typedef {object} OpenFiles of a process
 * @property {number} pid
 * @property {number} open
 * @property {number} max
 * @property {Array<{ what: string, count: number, closed: number }>} kinds equal ones, most first: a path or
 *   the peer of connections; closed: by that peer
 */

/**
 * Counts the open files of a process, on Linux.
 * @param {number} pid
 * @returns {OpenFiles | undefined} undefined if unknown
 */
function openFiles (pid) {
  const names = attempt(() => fs.readdirSync(`/proc/${pid}/fd`))
  const max = Number(/^Max open files\s+(\d+)/m.exec(read(`/proc/${pid}/limits`))?.[1])
  if (names === undefined || Number.isNaN(max)) return undefined
  const open = names.filter((name) => Number(name) < max) // inherited ones may be above the limit
  if (open.length < max / 2) return { pid, open: open.length, max, kinds: [] }
  const sockets = new Map(tcpSockets(pid).map((socket) => [`socket:[${socket.inode}]`, socket]))
  const links = open.map((name) => readLink(`/proc/${pid}/fd/${name}`))
  const kinds = groupBy(links, (link) => whatIs(link, sockets.get(link))).map((same) => ({
    what: whatIs(same[0], sockets.get(same[0])),
    count: same.length,
    closed: same.filter((link) => sockets.get(link)?.isClosed).length
  }))
  return { pid, open: open.length, max, kinds: kinds.sort((a, b) => b.count - a.count).slice(0, MAX_KINDS) }
}

/** @param {string} link of a descriptor @param {TcpSocket | undefined} socket */
function whatIs (link, socket) {
  if (socket === undefined) return link.replace(/:\[\d+\]$/, '')
  const { local, remote, isListening } = socket
  if (isListening) return `server at port ${local.port}`
  // The peers of accepted connections have different ports
  if (remote.port >= local.port) return `connection at port ${local.port}`
  return `connection to ${remote.host}:${remote.port}`
}

/** @param {number} pid @returns {Set<string> | undefined} undefined if they may not be read */
function socketInodes (pid) {
  try {
    const links = fs.readdirSync(`/proc/${pid}/fd`).map((name) => readLink(`/proc/${pid}/fd/${name}`))
    return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT' ? new Set() : undefined
  }
}

/**
 * Finds the processes that hold sockets, on Linux.
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
 * @returns {Address[] | undefined} undefined if unknown
 */
function listeningAddresses (pid) {
  if (process.platform !== 'linux') {
    const text = run('lsof', '-n', '-P', '-a', '-p', String(pid), '-iTCP', '-sTCP:LISTEN', '-Fn')
    const ports = [...text.matchAll(/^n.*:(\d+)$/gm)].map(([, port]) => Number(port))
    return text === '' ? undefined : ports.map((port) => ({ host: '127.0.0.1', port })) // none, or no lsof
  }
  const inodes = socketInodes(pid)
  if (inodes === undefined) return undefined
  const own = tcpSockets(pid).filter(({ isListening, inode }) => isListening && inodes.has(inode))
  return own.map(({ local: { host, port } }) =>
    ({ host: host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host, port }))
}

/**
 * @param {string} word of the command line
 * @returns {Target}
 * @throws {UsageError | RefusedError}
 */
function findTarget (word) {
  checkSystem()
  if (Number(word) > 0 && /^\d+$/.test(word)) return { pids: [Number(word)], others: [] }
  const end = endOf(word)
  if (end !== undefined) return { ...processesAt(end), end }
  if (isSocket(word)) return { pids: [], socket: word, others: [] }
  throw new UsageError(`${quote(word)} is neither a process id, nor :PORT, ADDRESS:PORT or the path of a ` +
    'LONGSTACK_SOCKET.')
}

/** @param {string} file the name of a LONGSTACK_SOCKET, or one of its sockets */
function isSocket (file) {
  return stateOfName(directoryOf(file))?.isDirectory() === true || stateOfName(file)?.isSocket() === true
}

/** @param {string} word @returns {End | undefined} undefined if it names none */
function endOf (word) {
  const [, host, digits] = /^(\[[^\]]+\]|[^:/[\]]*):(\d+)$/.exec(word) ?? []
  const port = Number(digits)
  if (digits === undefined || port < 1 || port > 65535) return undefined
  const name = host.replace(/^\[|\]$/g, '')
  if (name === '' || ANY.includes(name)) return { hosts: undefined, port, text: word }
  if (name === 'localhost') return { hosts: LOCALHOST, port, text: word }
  if (isIPv4(name) || isIPv6(name)) return { hosts: [plainHost(name)], port, text: word }
  throw new UsageError(`${quote(word)}: an address has numbers, as in 127.0.0.1:5432 or [::1]:5432.`)
}

/**
 * Returns whether one side of a connection matches an end.
 * @param {Address} side
 * @param {End} end
 */
function isAt (side, { hosts, port }) {
  return side.port === port && (hosts === undefined || ANY.includes(side.host) || hosts.includes(side.host))
}

/**
 * Returns whether either side of a handle matches an end.
 * @param {{ local?: string, remote?: string }} handle
 * @param {End} end
 */
function isHandleAt ({ local, remote }, end) {
  return [local, remote].some((text) => {
    const [, host, port] = /^\[?(.*?)\]?:(\d+)$/.exec(text ?? '') ?? []
    return port !== undefined && isAt({ host: plainHost(host), port: Number(port) }, end)
  })
}

/**
 * Finds the processes that listen at an end, or have a connection there.
 * @param {End} end
 * @returns {{ pids: number[], others: Target['others'] }}
 * @throws {RefusedError} if none of them runs Node
 */
function processesAt (end) {
  const inodes = tcpSockets().filter(({ local, remote }) => isAt(local, end) || isAt(remote, end))
    .map(({ inode }) => inode)
  const { pids, isComplete } = process.platform === 'linux' ? processesWith(inodes) : byLsof(end)
  const others = pids.filter((pid) => !isNode(pid)).map((pid) => ({ pid, program: programOf(pid) }))
  const own = pids.filter((pid) => isNode(pid) && pid !== process.pid)
  if (own.length > 0) return { pids: own, others }
  const names = others.map(({ pid, program }) => `process ${pid} (${program ?? 'unknown'})`)
  const has = names.length === 0 ? '' : ` ${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} there.`
  const unseen = isComplete ? '' : ' Processes of other users cannot be seen.'
  throw new RefusedError(`No process of Node listens or has a connection at ${end.text}.${has}${unseen}`)
}

/** @param {End} end */
function byLsof ({ hosts = [''], port }) {
  const filters = hosts.map((host) =>
    `-iTCP${host === '' ? '' : `@${host.includes(':') ? `[${host}]` : host}`}:${port}`)
  const text = run('lsof', '-n', '-P', '-t', ...filters)
  return { pids: [...new Set(text.split('\n').filter(Boolean).map(Number))], isComplete: false }
}

/** @param {string} program @param {...string} args @returns {string} its output; empty if it failed */
const run = (program, ...args) =>
  attempt(() => execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })) ?? ''

/** @param {string} file @returns {string} empty if it cannot be read */
const read = (file) => attempt(() => fs.readFileSync(file, 'utf8')) ?? ''

/**
 * Returns how long the main thread of a process has waited for a CPU so far, in ms.
 * @param {number} pid
 * @returns {number | undefined} undefined if the system does not report it (sched-stats.rst of Linux)
 */
function cpuWaitOf (pid) {
  const waited = Number(read(`/proc/${pid}/schedstat`).split(' ')[1])
  return waited >= 0 ? waited / 1e6 : undefined
}

/**
 * Returns the CPU time that a process has used, and its memory, on Linux.
 * @param {number} pid
 * @returns {{ cpuMs: number, rss: number }} rss: bytes; NaN if unknown
 */
function usageOf (pid) {
  const [user, system] = statFields(pid).slice(12, 14)
  const rss = /^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`))?.[1]
  return { cpuMs: (Number(user) + Number(system)) * 1000 / TICKS, rss: Number(rss) * 1024 }
}

/** @param {string} file */
const readLink = (file) => attempt(() => fs.readlinkSync(file)) ?? ''

module.exports = {
  GoneError,
  RefusedError,
  ageOf,
  checkProcess,
  cpuWaitOf,
  endedError,
  endedSentence,
  findTarget,
  hasEnded,
  isHandleAt,
  isSocket,
  listeningAddresses,
  nodeDescendants,
  openFiles,
  pidInside,
  processesWith,
  read,
  readLink,
  socketFiles,
  socketsOf,
  stateOf,
  tcpSockets,
  usageOf
}
