'use strict'

// Is a debugger attached? A run that it paused is no long run. Node does not tell; that its port is open says little, so
// the system is asked whether anybody is connected to it. Asked only where a thread stood still inside of a long run.

const fs = require('node:fs')

const LISTENING = '0A' // other states: somebody is connected, or was a moment ago

function isAttached () {
  try {
    const url = require('node:inspector').url()
    return url !== undefined && isConnected(Number(new URL(url).port))
  } catch {
    return false // a Node without an inspector, or --permission
  }
}

/** Is somebody connected to this port? Where the system does not tell, as if there were. @param {number} port */
function isConnected (port) {
  const ends = port.toString(16).toUpperCase().padStart(4, '0')
  const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6'].map(read)
  if (tables.every((table) => table === undefined)) return true
  return tables.some((table) => table?.split('\n').some((line) => {
    const [, local, , state] = line.trim().split(/\s+/)
    return state !== LISTENING && local?.endsWith(`:${ends}`)
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
