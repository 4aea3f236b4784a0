// import trace, { enable } from 'longstack': the same object as require() gives, with names.

import trace from '../index.js'

export default trace
export const { enable, disable, current, chain, stack, why, handles, stats, hook, onError, on, bind } = trace
