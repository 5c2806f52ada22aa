"""Answers with the host and the target that http.server, wsgiref or uWSGI reads from a request."""
import sys


def application(environ, start_response):
    target = environ.get('REQUEST_URI', environ.get('PATH_INFO'))
    body = f"seen={environ.get('HTTP_HOST')} uri={target}".encode('latin1', 'replace')
    start_response('200 OK', [('Content-Length', str(len(body)))])
    return [body]


def serve(server):
    print(f'port={server.server_address[1]}', flush=True)
    server.serve_forever()


if __name__ == '__main__':
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    from socketserver import ThreadingMixIn
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

    class Plain(BaseHTTPRequestHandler):
        def do_GET(self):
            body = f"seen={self.headers.get('Host')} uri={self.path}".encode('latin1', 'replace')
            self.send_response(200)
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

    class Threaded(ThreadingMixIn, WSGIServer):
        daemon_threads = True

    if sys.argv[1] == 'http.server':
        serve(ThreadingHTTPServer(('127.0.0.1', 0), Plain))
    else:
        server = Threaded(('127.0.0.1', 0), WSGIRequestHandler)
        server.set_app(application)
        serve(server)
