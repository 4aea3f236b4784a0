'use strict'

// longstack doctor: prints trace.doctor() of a process that runs nothing else.

const { print } = require('./terminal')

/** @type {import('./commands').Main} */
async function main ({ json }) {
  const { text, ...data } = diagnosis()
  await print(json ? `${JSON.stringify(data, undefined, 2)}\n` : `${text.trimEnd()}\n`)
}

function diagnosis () {
  const trace = require('../../index')
  trace.enable()
  try {
    return trace.doctor()
  } finally {
    trace.disable()
  }
}

module.exports = { main }
