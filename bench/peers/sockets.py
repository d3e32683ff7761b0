"""Peers: the vendors' own socket clients for Python, one message handler each. Usage: sockets.py slack|lark"""

import asyncio
import os
import sys

PLATFORM = os.environ["PLATFORM"]
seen = 0


async def slack():
    from slack_sdk.socket_mode.aiohttp import SocketModeClient
    from slack_sdk.socket_mode.response import SocketModeResponse
    from slack_sdk.web.async_client import AsyncWebClient

    async def on_request(client, request):
        global seen
        seen += len(request.payload["event"]["text"])
        await client.send_socket_mode_response(SocketModeResponse(request.envelope_id))

    client = SocketModeClient(app_token="xapp-bench", web_client=AsyncWebClient(token="xoxb-bench", base_url=f"{PLATFORM}/api/"))
    client.socket_mode_request_listeners.append(on_request)
    await client.connect()
    await asyncio.Event().wait()


def lark():
    import lark_oapi

    def on_message(event):
        global seen
        seen += len(event.event.message.content)

    handler = lark_oapi.EventDispatcherHandler.builder("", "").register_p2_im_message_receive_v1(on_message).build()
    level = lark_oapi.LogLevel.ERROR
    lark_oapi.ws.Client("cli_0123456789abcdef", "bench-app-secret-0123456789", event_handler=handler, domain=PLATFORM, log_level=level).start()


if sys.argv[1] == "slack":
    asyncio.run(slack())
else:
    lark()
