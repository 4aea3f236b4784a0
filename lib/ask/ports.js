'use strict'

// Where processes listen, and where the inspector of one does: from /proc on Linux, by lsof on macOS.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const { read, readLink } = require('./system')

const DEFAULT_PORT = 9229
const LISTEN = '0A' // state of a socket in /proc/net/tcp, see include/net/tcp_states.h

/** @typedef {{ host: string, port: number }} Address */

/** Returns the port on which a process would open its inspector. @param {number} pid */
function inspectorPort (pid) {
  return inspectorFlags(pid)[0]?.port ?? DEFAULT_PORT
}

/**
 * Returns which process listens on a port.
 * @param {number} port
 * @returns {number | undefined} 0: one that cannot be seen; undefined: none does
 */
function listenerAt (port) {
  const rows = ['tcp', 'tcp6'].flatMap((table) => listeningRows(`/proc/net/${table}`))
  const inodes = rows.filter((row) => addressOf(row[1]).port === port).map((row) => row[9])
  return inodes.length === 0 ? undefined : processWith(inodes) ?? 0
}

/** @param {string[]} inodes of sockets @returns {number | undefined} a process that has one of them open */
function processWith (inodes) {
  const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)
  return pids.find((pid) => inodes.some((inode) => socketInodes(pid)?.has(inode)))
}

/** @param {string} table such as /proc/net/tcp @returns {string[][]} its rows of sockets that listen */
function listeningRows (table) {
  const rows = read(table).split('\n').slice(1).map((row) => row.trim().split(/\s+/))
  return rows.filter((row) => row[3] === LISTEN)
}

/**
 * Lists where the inspector of a process may listen now, most likely first.
 * @param {number} pid
 * @returns {Address[]}
 */
function inspectorAddresses (pid) {
  const addresses = listeningAddresses(pid)
  const flags = inspectorFlags(pid)
  const ports = [...flags.map(({ port }) => port), DEFAULT_PORT]
  if (addresses === undefined) return ports.map((port) => ({ host: '127.0.0.1', port }))
  const isChosenByNode = flags.some(({ port, opens }) => port === 0 && opens)
  return isChosenByNode ? addresses : addresses.filter(({ port }) => ports.includes(port))
}

/**
 * Lists where the inspector of a process may have come to listen at some time.
 * @param {number} pid
 * @returns {Address[]}
 */
function possibleAddresses (pid) {
  return inspectorFlags(pid).some(({ port }) => port === 0) ? listeningAddresses(pid) ?? [] : []
}

/**
 * Lists the flags that name a port of the inspector: `--inspect=9300`, `--inspect-port=0.0.0.0:9300`.
 * @param {number} pid
 * @returns {Array<{ port: number, opens: boolean }>} opens: the inspector is open from the start
 */
function inspectorFlags (pid) {
  const text = `${read(`/proc/${pid}/cmdline`)}\0${read(`/proc/${pid}/environ`)}`
  const flags = text.matchAll(/--(inspect(?:-brk|-wait|-port)?|debug-port)[=\0](?:[^\s\0]*:)?(\d+)/g)
  return [...flags].map(([, flag, port]) => ({ port: Number(port), opens: !flag.endsWith('port') }))
}

/**
 * Lists the TCP addresses that a process listens on.
 * @param {number} pid
 * @returns {Address[] | undefined} undefined: the system does not tell
 */
function listeningAddresses (pid) {
  if (process.platform !== 'linux') return addressesByLsof(pid)
  const inodes = socketInodes(pid)
  if (inodes === undefined) return undefined
  return ['tcp', 'tcp6'].flatMap((table) => {
    const rows = listeningRows(`/proc/${pid}/net/${table}`)
    return rows.filter((row) => inodes.has(row[9])).map((row) => addressOf(row[1]))
  })
}

/** @param {number} pid @returns {Set<string> | undefined} */
function socketInodes (pid) {
  try {
    const names = fs.readdirSync(`/proc/${pid}/fd`)
    const links = names.map((name) => readLink(`/proc/${pid}/fd/${name}`))
    return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
  } catch {
    return undefined
  }
}

/**
 * @param {string} text `0100007F:240D`: the address in the order of the CPU, and the port
 * @returns {Address}
 */
function addressOf (text) {
  const [address, port] = text.split(':')
  const bytes = (address.match(/../g) ?? []).map((byte) => parseInt(byte, 16))
  const isIPv4 = bytes.length === 4 && bytes.some((byte) => byte !== 0)
  const isLoopback6 = bytes.length === 16 && bytes[12] === 0 && bytes[15] === 1 && bytes[0] === 0
  const host = isIPv4 ? bytes.reverse().join('.') : isLoopback6 ? '::1' : '127.0.0.1'
  return { host, port: parseInt(port, 16) }
}

/** @param {number} pid @returns {Address[] | undefined} */
function addressesByLsof (pid) {
  try {
    const args = ['-a', '-p', String(pid), '-iTCP', '-sTCP:LISTEN', '-n', '-P', '-Fn']
    const text = execFileSync('lsof', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    return [...text.matchAll(/^n.*:(\d+)$/gm)].map(([, port]) => ({ host: '127.0.0.1', port: Number(port) }))
  } catch {
    return undefined
  }
}

module.exports = {
  inspectorAddresses,
  inspectorPort,
  listenerAt,
  listeningAddresses,
  possibleAddresses
}
