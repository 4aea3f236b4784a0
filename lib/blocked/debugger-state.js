'use strict'

// Whether a debugger is attached: a callback that it paused does not count as blocking. Node does not report
// it, and an open port proves little, so the kernel's tables are searched for a connection to that port.
// Called only where a thread used no CPU inside a blocking callback.

const fs = require('node:fs')

const LISTENING = '0A' // other states: a client is connected, or was a moment ago (include/net/tcp_states.h)

function isAttached () {
  try {
    const url = require('node:inspector').url()
    return url !== undefined && isConnected(Number(new URL(url).port))
  } catch {
    return false // a Node without inspector, or --permission
  }
}

/**
 * Returns whether a client is connected to a port of this machine; true where the kernel does not report it.
 * @param {number} port
 */
function isConnected (port) {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6'].map(read)
  if (tables.every((table) => table === undefined)) return true
  return tables.some((table) => table?.split('\n').some((line) => {
    const [, local, , state] = line.trim().split(/\s+/)
    return state !== LISTENING && local?.endsWith(suffix)
  }))
}

/** @param {string} file */
function read (file) {
  try {
    return fs.readFileSync(file, 'latin1')
  } catch {
    return undefined
  }
}

module.exports = { isAttached }
