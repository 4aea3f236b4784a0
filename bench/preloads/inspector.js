'use strict'

// What DevTools does: V8 links the stacks of all tasks while a debugger that asks for them is connected.

const { Session } = require('node:inspector')

const session = new Session()
session.connect()
session.post('Debugger.enable')
session.post('Debugger.setAsyncCallStackDepth', { maxDepth: 32 })

module.exports = { session }
