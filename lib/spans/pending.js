'use strict'

// What nobody tells the end of is looked at when a run of its span is over: does the span wait for it? Timers may be
// cleared, handles closed, and what compresses has something to do only now and then.

const { own } = require('../context/kinds')
const { hiddenProperty } = require('../handles/inside')

const OVER = 0
const RESTS = 1
const PENDS = 2

const isReferenced = hiddenProperty('refed') // of timers

/**
 * @param {object} deps
 * @param {(handle: object) => boolean} deps.isAlive
 * @param {(handle: object, name: string) => any} deps.ask
 * @returns {(type: string, resource: any) => 0 | 1 | 2}
 */
function createStateOf ({ isAlive, ask }) {
  return (type, resource) => {
    if (type === 'Timeout') return timer(resource)
    if (type === 'ZLIB') return own(resource, 'buffer') == null ? RESTS : PENDS
    return isAlive(resource) && !isStandard(type, resource) ? PENDS : OVER
  }

  /** Nobody waits for the process's own stdin, stdout and stderr; they begin with their first use. @param {string} type @param {object} handle */
  function isStandard (type, handle) {
    const fd = type === 'PIPEWRAP' || type === 'TCPWRAP' ? ask(handle, 'fd') : -1
    return fd >= 0 && fd <= 2
  }

  /** One that does not keep the process, such as a socket's, waits for nothing: it is a limit to waiting. @param {any} timer */
  function timer (timer) {
    if (timer._destroyed === true) return OVER
    return isReferenced(timer) === false ? RESTS : PENDS
  }
}

module.exports = { createStateOf, OVER, RESTS, PENDS }
