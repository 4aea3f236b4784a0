'use strict'

// Works like DevTools: V8 links the stacks of all tasks while a debugger has set an async call stack depth.

const { Session } = require('node:inspector')

const session = new Session()
session.connect()
session.post('Debugger.enable')
session.post('Debugger.setAsyncCallStackDepth', { maxDepth: 32 })

module.exports = { session }
