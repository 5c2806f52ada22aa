import java.io.FileInputStream;
import java.net.URI;
import java.net.http.*;
import java.security.KeyStore;
import java.security.cert.*;
import javax.net.ssl.*;

/** Asks for each URL with Java's own client and prints what came, or why nothing did, and how long it took. */
public class Fetch {
    public static void main(String[] urls) throws Exception {
        // Java trusts its own list of authorities; the test's is in the system's.
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var file = new FileInputStream("ca.pem")) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        var client = HttpClient.newBuilder().sslContext(context).build();
        for (String url : urls) {
            long began = System.nanoTime();
            String said;
            try {
                var answer = client.send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString());
                said = answer.statusCode() + " " + answer.headers().firstValue("x-pen-denied").orElse("") + " " + answer.body().lines().findFirst().orElse("");
            } catch (Exception e) {
                said = e.toString();
            }
            System.out.println((System.nanoTime() - began) / 1000000 + " " + said);
        }
    }
}
