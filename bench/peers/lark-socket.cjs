// Peer: the Lark Node SDK's long connection, one message handler.
const lark = require('@larksuiteoapi/node-sdk');
let n = 0;
const eventDispatcher = new lark.EventDispatcher({ loggerLevel: lark.LoggerLevel.fatal }).register({
  'im.message.receive_v1': async (data) => { n += data.message.content.length; },
});
new lark.WSClient({ appId: 'cli_0123456789abcdef', appSecret: 'bench-app-secret-0123456789', domain: process.env.PLATFORM, loggerLevel: lark.LoggerLevel.fatal })
  .start({ eventDispatcher });
